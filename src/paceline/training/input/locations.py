"""Files wherever fsspec finds them: read ahead, resumed when the connection drops, kept in a local folder.

A remote file is read in blocks, and the next block is fetched in the background (fsspec's `background`
cache). After a lost connection, reading continues where it was; when reconnecting fails again and again, an
`InputError` is raised.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import re
import shutil
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from paceline.training import connections, errors

#: What file systems call the version of a file, each in its own word.
_VERSIONS = ("ETag", "mtime", "LastModified", "modificationTime", "modification_time")
#: The names of copies in a cache, and of those that are being fetched; its folder may hold other files.
_COPY = re.compile(r"[0-9a-f]{32}\.[0-9a-f]{8}")
_PART = re.compile(r"\.[0-9a-f]{32}\.\d+\.\d+")
#: A copy that has not grown for so long is of a process that was killed.
_ABANDONED_SECONDS = 3600.0
_log = logging.getLogger(__name__)
_BLOCK_BYTES = 2 << 20
_SMALL_BLOCK_BYTES = 64 << 10
_HIDDEN = ("_", ".")


def matches(url: str) -> list[str]:
    """Return the files that a URL, a folder or a pattern with `*` stands for.

    In a folder, and by a pattern, names that begin with `_` or `.` are passed over, as Spark and Hive leave
    such files beside their data. A pattern matches these names if it has the `_` or `.` itself.

    Raises:
        InputError: there is no such file, or its server does not answer.
    """
    system, path = connections.system_of(url)
    if "*" not in url:
        if connections.retried(url, lambda: system.info(path)).get("type") != "directory":
            return [url]
        urls = _within(system, path, url)
        if not urls:
            raise errors.InputError.of(url, "there is no file in this folder")
        return urls
    matching = connections.retried(url, lambda: system.glob(path, detail=True))
    urls = []
    for glob_path, info in sorted(matching.items()):
        if not _is_hidden(PurePosixPath(glob_path), PurePosixPath(path)):
            is_folder = info.get("type") == "directory"
            urls += _within(system, glob_path, url) if is_folder else [system.unstrip_protocol(glob_path)]
    if not urls:
        raise errors.InputError.of(url, "no file matches this pattern")
    return urls


def _is_hidden(path: PurePosixPath, pattern: PurePosixPath) -> bool:
    """Return whether a file or a folder above it is hidden, and the pattern does not ask for it."""
    first = next(number for number, part in enumerate(pattern.parts) if "*" in part)
    asked = pattern.parts if len(path.parts) == len(pattern.parts) else ("",) * len(path.parts)
    return any(
        part.startswith(_HIDDEN) and not wanted.startswith(_HIDDEN)
        for part, wanted in list(zip(path.parts, asked, strict=True))[first:]
    )


def _within(system: Any, folder: str, url: str) -> list[str]:
    """Return the files of a folder and its subfolders, as in a table that is partitioned by a column."""
    found = []
    for each in connections.retried(url, lambda: system.find(folder)):
        below = PurePosixPath(each).relative_to(PurePosixPath(folder))
        if not any(part.startswith(_HIDDEN) for part in below.parts):
            found.append(system.unstrip_protocol(each))
    return found


@contextlib.contextmanager
def opened(url: str, cache: Cache | None = None, *, whole: bool = True) -> Iterator[BinaryIO]:
    """Open a file to read its bytes, anywhere in it; not `whole` if only a little of it is wanted.

    Raises:
        InputError: there is no such file, or the connection to its server is lost for good; also while
            reading.
    """
    system, path = connections.system_of(url)
    if connections.is_local(system):
        with connections.retried(url, lambda: open(path, "rb")) as stream:
            yield stream
        return
    kept = cache.path(url) if cache else None
    block_bytes = _BLOCK_BYTES if whole else _SMALL_BLOCK_BYTES
    with open(kept, "rb") if kept else _remote(url, block_bytes) as stream:
        yield stream


@contextlib.contextmanager
def local(url: str, cache: Cache | None = None) -> Iterator[str]:
    """Yield a path to the file on this machine: its own, that in the cache, or a temporary copy.

    Raises:
        InputError: as `opened`.
    """
    system, path = connections.system_of(url)
    kept = path if connections.is_local(system) else cache.path(url) if cache else None
    if kept:
        yield str(kept)
        return
    with tempfile.NamedTemporaryFile(prefix="paceline-") as copy, _remote(url, _BLOCK_BYTES) as stream:
        shutil.copyfileobj(stream, copy, _BLOCK_BYTES)
        copy.flush()
        yield copy.name


@dataclass(frozen=True)
class Cache:
    """Copies of remote files in a folder; above `max_bytes` the least recently used copies are removed.

    A copy's name holds the checksum of its content. If anything is wrong with the folder or a copy, the file
    is read from its source and a warning is logged.
    """

    folder: str
    max_bytes: int | None = None

    def path(self, url: str) -> Path | None:
        """Return the copy of a file, fetched if necessary; None if it cannot be kept.

        Raises:
            InputError: the file cannot be read at its source.
        """
        system, path = connections.system_of(url)
        info = connections.retried(url, lambda: system.info(path))
        size = info.get("size")
        version = [str(info[key]) for key in _VERSIONS if key in info]
        name = hashlib.blake2b("\n".join([url, str(size), *version]).encode(), digest_size=16).hexdigest()
        try:
            Path(self.folder).mkdir(parents=True, exist_ok=True)
            kept = self._whole(name)
            if kept is None and (self.max_bytes is None or (size is not None and size <= self.max_bytes)):
                self._make_room(size or 0)
                kept = self._fetch(url, name)
        except OSError as error:
            _log.warning(
                "the cache of input files %s is of no use (%s): %s is read remotely", self.folder, error, url
            )
            return None
        return kept

    def _whole(self, name: str) -> Path | None:
        """Return the copy of that name, if its content is unchanged."""
        for kept in Path(self.folder).glob(f"{name}.*"):
            if f".{_checksum(kept):08x}" == kept.suffix:
                os.utime(kept)
                return kept
            _log.warning("%s in the cache of input files is broken: it is fetched again", kept)
            kept.unlink(missing_ok=True)
        return None

    def _fetch(self, url: str, name: str) -> Path:
        part = Path(self.folder) / f".{name}.{os.getpid()}.{threading.get_ident()}"
        try:
            with _remote(url, _BLOCK_BYTES) as stream, part.open("wb") as copy:
                shutil.copyfileobj(stream, copy, _BLOCK_BYTES)
            return part.replace(Path(self.folder) / f"{name}.{_checksum(part):08x}")
        finally:
            part.unlink(missing_ok=True)

    def _make_room(self, wanted: int) -> None:
        """Remove what killed processes have begun, and copies that leave no room for so many bytes."""
        used = 0
        for touched_at, size, part in self._like(_PART):
            if time.time() - touched_at > _ABANDONED_SECONDS:
                part.unlink(missing_ok=True)
            else:
                used += size
        if self.max_bytes is None:
            return
        copies = self._like(_COPY)
        used += sum(size for _, size, _ in copies)
        for _, size, copy in copies:
            if used + wanted <= self.max_bytes:
                return
            copy.unlink(missing_ok=True)
            used -= size

    def _like(self, names: re.Pattern[str]) -> list[tuple[float, int, Path]]:
        """Return when files with such names were touched, their bytes and their paths, the oldest first."""
        found = []
        for path in Path(self.folder).iterdir():
            if names.fullmatch(path.name):
                with contextlib.suppress(FileNotFoundError):  # Another process has removed it.
                    status = path.stat()
                    found.append((status.st_mtime, status.st_size, path))
        return sorted(found)


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _remote(url: str, block_bytes: int) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_Remote(url, block_bytes), block_bytes))


class _Remote(io.RawIOBase):
    """A remote file that is reopened, and read on, when its connection is lost."""

    def __init__(self, url: str, block_bytes: int) -> None:
        self._url = url
        self._block_bytes = block_bytes
        self._place = 0
        self._stream: Any = None
        self._size: int = connections.retried(url, self._measure)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = base + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: Any) -> int:
        data = connections.retried(self._url, lambda: self._read(len(buffer)), self._lose)
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def close(self) -> None:
        self._lose()
        super().close()

    def _read(self, count: int) -> bytes:
        stream = self._opened()
        stream.seek(self._place)
        return bytes(stream.read(count))

    def _opened(self) -> Any:
        if self._stream is None:
            system, path = connections.system_of(self._url)
            ahead = {"cache_type": "background", "block_size": self._block_bytes}
            stream = system.open(path, "rb", **(ahead if connections.reads_ahead(system) else {}))
            self._stream = stream if stream.seekable() else _copied(stream)
        return self._stream

    def _measure(self) -> int:
        stream = self._opened()
        stream.seek(0, io.SEEK_END)
        return int(stream.tell())

    def _lose(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def _copied(stream: Any) -> BinaryIO:
    """Return a copy of a whole stream whose server cannot give parts of a file."""
    copy = cast(BinaryIO, tempfile.TemporaryFile(prefix="paceline-"))  # noqa: SIM115 - closed by its reader
    with stream:
        shutil.copyfileobj(stream, copy, _BLOCK_BYTES)
    return copy
