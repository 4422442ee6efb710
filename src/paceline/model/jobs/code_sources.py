"""Sources of a job's code, if neither its image nor the folder of its job file holds it."""

from __future__ import annotations

import dataclasses
import posixpath
import urllib.parse

#: Environment variables with which code is fetched from a private source (``paceline.agent.fetch``); they are
#: not passed on to commands.
CREDENTIALS = ("PACELINE_CODE_USER", "PACELINE_CODE_PASSWORD")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """A commit of a repository, named by its hash, by a branch or by a tag."""

    url: str
    revision: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A tar or zip archive by its URL; ``sha256`` is its checksum, 64 hexadecimal digits."""

    url: str
    sha256: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """The code of a job: one source, and the folder within it.

    Attributes:
        git: a repository.
        archive: an archive.
        folder: a folder of the machine that submits the job, relative to the job file.
        config_map: the config map that holds such a folder, packed, in a cluster.
        path: the folder within the source that has the code; None: the whole source.
    """

    git: Git | None = None
    archive: Archive | None = None
    folder: str | None = None
    config_map: str | None = None
    path: str | None = None

    def __str__(self) -> str:
        if self.git is not None:
            return f"{shown_url(self.git.url)} at {self.git.revision}"
        if self.archive is not None:
            return shown_url(self.archive.url)
        if self.folder is not None:
            return f"the folder {self.folder}"
        return f"the config map {self.config_map}"

    def root(self, top: str) -> str:
        """Return the folder of the code after its source was fetched into ``top``."""
        return posixpath.normpath(posixpath.join(top, self.path or ""))

    def start(self, top: str, working_dir: str | None) -> str:
        """Return the folder in which commands start: a working directory in the code, or an absolute one."""
        return posixpath.normpath(posixpath.join(top, self.path or "", working_dir or ""))


def shown_url(url: str) -> str:
    """Return a URL without its query, which may hold a secret signature."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")) if parts.query else url
