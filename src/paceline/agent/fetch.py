"""Fetches the code of a job: from git, from an archive by its URL, or from a packed folder.

``python3 -I -m paceline.agent.fetch CONFIG FOLDER WORD`` runs in an init container or on submit. Its
arguments:

- ``CONFIG``: a JSON file with one of ``{"git": {"url", "revision"}}``, ``{"archive": {"url", "sha256"}}`` and
  ``{"packed": PATH}``, and with ``start``: a folder that has to exist within the code;
- ``FOLDER``: the folder to write, whole or not at all;
- ``WORD``: a file for the final message: ``{"notes": [...]}`` or ``{"error": "..."}``.

The user and the password or token for a private source come from the environment (`USER`, `PASSWORD`), never
from the command line, and appear in no message. No step uses a shell.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from paceline.agent import unpacking

USER, PASSWORD = "PACELINE_CODE_USER", "PACELINE_CODE_PASSWORD"
MAX_ARCHIVE_BYTES = 1 << 30
#: A server that sends nothing for this long counts as lost.
SILENCE_SECONDS = 60
GIT_SECONDS = 1800
_DELAYS_SECONDS = (1.0, 3.0, 9.0)
_BUSY = (408, 425, 429)
_CHUNK = 1 << 20
#: Kubernetes keeps 4096 bytes of a container's termination message.
_MAX_WORD = 1500
_HEX = re.compile(r"[0-9a-f]{7,64}")
_PROTOCOLS = ("file", "git", "http", "https", "ssh")
#: Variables that would make git use another repository than ours (``git rev-parse --local-env-vars``).
_GITS_OWN = re.compile(
    r"GIT_(DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|COMMON_DIR|NAMESPACE|PREFIX|CONFIG.*)"
)

Config = Mapping[str, Any]


class FetchError(Exception):
    """The code cannot be fetched; the message names the source and the reason."""


def fetch(config: Config, folder: Path) -> list[str]:
    """Fetch code into a folder, replacing what is there; return notes for the user.

    Raises:
        FetchError: the code cannot be fetched; the folder is unchanged.
    """
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".code-") as scratch:
        code = Path(scratch) / "code"
        code.mkdir()
        if "git" in config:
            notes = _from_git(config["git"]["url"], config["git"]["revision"], code, Path(scratch))
        elif "archive" in config:
            notes = _from_archive(config["archive"]["url"], config["archive"]["sha256"], code, Path(scratch))
        else:
            notes = _unpacked("the folder that was submitted", Path(config["packed"]), code)
        start = code / config["start"]
        if not start.is_dir() or not start.resolve().is_relative_to(code.resolve()):
            raise FetchError(f"{_source(config)} has no folder {config['start']!a} to start in")
        if folder.exists():
            shutil.rmtree(folder)
        code.replace(folder)
    return notes


def _source(config: Config) -> str:
    found = config.get("git") or config.get("archive")
    return _shown(found["url"]) if found else "the folder that was submitted"


def _shown(url: str) -> str:
    """Return a URL without its query, which may be a secret signature."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")) if parts.query else url


# --- git ----------------------------------------------------------------------------------------------


def _from_git(url: str, revision: str, folder: Path, scratch: Path) -> list[str]:
    where = f"{_shown(url)} at {revision}"
    if url.startswith("-") or revision.startswith(("-", "+")) or ":" in revision:
        raise FetchError(f"{where}: that is an option of git, not a place in a repository")
    store = scratch / "git"
    try:
        _git(None, "init", "--quiet", "--bare", "--template=", str(store), url=url)
        commit = _commit(store, url, revision)
        _git(store, "--work-tree", str(folder), "checkout", "--quiet", "--force", "--detach", commit, url=url)
    except FileNotFoundError as error:
        raise FetchError(f"{where}: git is not installed where the code is fetched") from error
    except _GitError as error:
        raise FetchError(f"{where}: {error}") from error
    notes = [f"code: commit {commit} of {_shown(url)}"]
    if (folder / ".gitmodules").exists():
        notes.append(f"code: submodules of {_shown(url)} are not fetched")
    if _uses_lfs(folder) and not shutil.which("git-lfs"):
        notes.append("code: files that Git LFS keeps are only pointers: git-lfs is not installed")
    return notes


class _GitError(Exception):
    """Git refused."""


def _commit(store: Path, url: str, revision: str) -> str:
    """Fetch a revision and return its commit; fetch the whole history only if the server requires it."""
    fetch = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules")
    try:
        _git(store, *fetch, "--depth=1", "--", url, revision, url=url)
        wanted = "FETCH_HEAD"
    except _GitError:
        if not _HEX.fullmatch(revision):
            raise
        # The revision is a short hash, or the server does not send single commits.
        everything = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        _git(store, *fetch, "--", url, *everything, url=url)
        wanted = revision
    return _git(store, "rev-parse", "--verify", f"{wanted}^{{commit}}", url=url).strip()


def _git(store: Path | None, *arguments: str, url: str) -> str:
    command = ["git", *(["--git-dir", str(store)] if store else []), *arguments]
    try:
        done = subprocess.run(
            command, env=_git_environment(url), stdin=subprocess.DEVNULL, capture_output=True,
            timeout=GIT_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise _GitError(f"git has not come to an end in {GIT_SECONDS} s") from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        told = [line for line in lines if line.startswith(("fatal:", "error:", "remote:", "ERROR:"))] or lines
        raise _GitError(" ".join(told[-3:]) or f"git ended with exit code {done.returncode}")
    return done.stdout.decode()


def _git_environment(url: str) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not _GITS_OWN.fullmatch(name)}
    environment |= {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": ":".join(_PROTOCOLS),
        "GIT_HTTP_LOW_SPEED_LIMIT": "1",
        "GIT_HTTP_LOW_SPEED_TIME": str(SILENCE_SECONDS),
    }
    authorization, parts = _authorization(), urllib.parse.urlsplit(url)
    if authorization and parts.scheme in ("http", "https"):
        # For this server alone; on the command line every user of the machine could read it.
        environment |= {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"http.{parts.scheme}://{parts.netloc}/.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: {authorization}",
        }
    return environment


def _authorization() -> str | None:
    password = os.environ.get(PASSWORD)
    if not password:
        return None
    pair = f"{os.environ.get(USER) or 'git'}:{password}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def _uses_lfs(folder: Path) -> bool:
    attributes = folder / ".gitattributes"
    return attributes.is_file() and not attributes.is_symlink() and b"filter=lfs" in attributes.read_bytes()


# --- Archives -----------------------------------------------------------------------------------------


def _from_archive(url: str, sha256: str, folder: Path, scratch: Path) -> list[str]:
    archive, shown = scratch / "archive", _shown(url)
    match urllib.parse.urlsplit(url).scheme:
        case "http" | "https":
            _download(url, archive)
        case "file":
            _copy_local(url, archive)
        case _:
            _copy_remote(url, archive)
    digest = hashlib.sha256()
    with archive.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != sha256:
        raise FetchError(
            f"{shown}: its SHA-256 is {digest.hexdigest()}, not {sha256}; it is another archive, or it was "
            "changed, and nothing of it was unpacked"
        )
    return _unpacked(shown, archive, folder)


def _unpacked(source: str, archive: Path, folder: Path) -> list[str]:
    try:
        unpacking.unpack(archive, folder)
    except unpacking.ArchiveError as error:
        raise FetchError(f"{source}: {error}") from error
    return []


def _download(url: str, target: Path) -> None:
    for delay in (*_DELAYS_SECONDS, None):
        try:
            return _download_once(url, target)
        except urllib.error.HTTPError as error:
            with error:
                if delay is None or (error.code < 500 and error.code not in _BUSY):
                    raise FetchError(f"{_shown(url)}: the server says {error.code} {error.reason}") from error
        except (OSError, http.client.HTTPException) as error:
            if delay is None:
                reason = getattr(error, "reason", None) or error
                raise FetchError(f"{_shown(url)}: it cannot be reached: {reason}") from error
        time.sleep(delay)


def _download_once(url: str, target: Path) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "paceline"})
    authorization = _authorization()
    if authorization:
        # Not sent to another server after a redirect.
        request.add_unredirected_header("Authorization", authorization)
    with _opener().open(request, timeout=SILENCE_SECONDS) as answer, target.open("wb") as file:
        size, wanted = _copy(url, answer, file), answer.headers.get("Content-Length")
        if wanted is not None and wanted.isdecimal() and size < int(wanted):
            raise ConnectionError(f"the connection was lost after {size} of {wanted} bytes")


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener for HTTP and HTTPS only: a redirect cannot lead to a file of this machine."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(), urllib.request.HTTPHandler(), urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(), urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(), urllib.request.UnknownHandler(),
    ):  # fmt: skip
        opener.add_handler(handler)
    return opener


def _copy(url: str, source: IO[bytes], target: IO[bytes]) -> int:
    """Copy a file and return its size."""
    size = 0
    while chunk := source.read(_CHUNK):
        size += len(chunk)
        if size > MAX_ARCHIVE_BYTES:
            raise FetchError(f"{_shown(url)}: it has more than {MAX_ARCHIVE_BYTES} bytes, which is the limit")
        target.write(chunk)
    return size


def _copy_local(url: str, target: Path) -> None:
    path = urllib.request.url2pathname(urllib.parse.urlsplit(url).path)
    try:
        with open(path, "rb") as source, target.open("wb") as file:
            _copy(url, source, file)
    except OSError as error:
        raise FetchError(f"{url}: {error.strerror or error}") from error


def _copy_remote(url: str, target: Path) -> None:
    """Copy a file through fsspec, which finds its packages and credentials by the URL and the environment."""
    shown = _shown(url)
    try:
        import fsspec

        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise FetchError(f"{shown}: a package is missing where the code is fetched: {error}") from error
    except _remote_errors() as error:
        raise FetchError(f"{shown}: {_reason(error)}") from error
    try:
        with system.open(path, "rb") as source, target.open("wb") as file:
            _copy(url, source, file)
    except _remote_errors() as error:
        raise FetchError(f"{shown}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _remote_errors() -> tuple[type[Exception], ...]:
    """Return the errors that fsspec's file systems raise: the operating system's and their libraries' own."""
    found: list[type[Exception]] = [OSError, ValueError]
    for module, names in (
        ("botocore.exceptions", ("BotoCoreError", "ClientError")),
        ("pyarrow.lib", ("ArrowException",)),
    ):
        found += [getattr(sys.modules[module], name) for name in names if module in sys.modules]
    if "hdfs_native" in sys.modules:
        found.append(RuntimeError)
    return tuple(found)


# --- The final message --------------------------------------------------------------------------------


def _hidden(text: str, secrets: Iterable[str]) -> str:
    """Return a message with every secret masked, whatever its origin."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def _word(message: str) -> str:
    authorization = _authorization() or ""
    secrets = (os.environ.get(PASSWORD, ""), authorization.removeprefix("Basic "))
    return _hidden(message, filter(None, secrets))[:_MAX_WORD]


def main() -> int:
    """Fetch what the config names into the given folder, and write the final message."""
    config_file, folder, word = map(Path, sys.argv[1:])
    # The replica may run as any user, and has to read, run and write its own folder.
    os.umask(0)
    config = json.loads(config_file.read_text())
    try:
        notes = fetch(config, folder)
    except (FetchError, OSError) as error:
        about = "" if isinstance(error, FetchError) else f"{_source(config)}: "
        message = _word(f"{about}{error}")
        word.write_text(json.dumps({"error": message}))
        sys.stderr.write(f"{message}\n")
        return 1
    word.write_text(json.dumps({"notes": notes}))
    sys.stdout.writelines(f"{note}\n" for note in notes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
