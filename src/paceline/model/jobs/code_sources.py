"""Where the code of a job comes from, when its image or the folder of its job file do not hold it."""

from __future__ import annotations

import dataclasses
import posixpath
import urllib.parse

#: Variables by which code is fetched from a private source (``paceline.agent.fetch``); no command has them.
CREDENTIALS = ("PACELINE_CODE_USER", "PACELINE_CODE_PASSWORD")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """A commit of a repository, by itself or by a branch or a tag."""

    url: str
    revision: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A tar or zip archive by its URL; ``sha256`` is its checksum, 64 hexadecimal digits."""

    url: str
    sha256: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """The code of a job: one source, and what of it counts.

    Attributes:
        git: a repository.
        archive: an archive.
        folder: a folder of the machine that submits the job, relative to the job file.
        config_map: such a folder, packed, as a cluster has it.
        path: the folder within the source that is the code; None: all of it.
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
        """Return the folder of the code when its source was fetched into ``top``."""
        return posixpath.normpath(posixpath.join(top, self.path or ""))

    def start(self, top: str, working_dir: str | None) -> str:
        """Return where commands start: in a working directory within the code, or in an absolute one."""
        return posixpath.normpath(posixpath.join(top, self.path or "", working_dir or ""))


def shown_url(url: str) -> str:
    """Return a URL without its query, which may be a signature that others should not see."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")) if parts.query else url
