"""Unpacks archives so that no entry can escape the folder or fill the disk.

The standard library's own extraction is not used: its filters had vulnerabilities of their own (CVE-2025-4517
and others), and Python versions in use still have them. This module writes only plain files and folders, into
a folder that was empty before, and makes links once all files exist. So nothing is ever written through a
link.
"""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

MAX_BYTES = 2 << 30
MAX_FILES = 100_000
_CHUNK = 1 << 20
#: No header of a tar archive needs to be larger; a larger claim is an attempt to exhaust memory.
_MAX_READ = 4 << 20
_MAX_LINK = 4096
#: Of a zip archive: the end-of-directory record, the comment after it, and the ZIP64 records before it.
_DIRECTORY_END = b"PK\5\6"
_DIRECTORY_END_BYTES, _MAX_COMMENT, _WIDE_LOCATOR_BYTES, _WIDE_END_BYTES = 22, 65_535, 20, 56
#: Size of a file's directory entry: a long name, and the extra fields that several systems add.
_ENTRY_BYTES = 256
#: Errors that the standard library raises for damaged archives, and the operating system for odd names.
_DAMAGES = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, ValueError,
    RuntimeError, ArithmeticError, LookupError, OSError,
)  # fmt: skip


class ArchiveError(Exception):
    """An archive cannot be unpacked, or must not be."""


def unpack(archive: Path, folder: Path, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> None:
    """Unpack a tar, tar.gz or zip archive, whatever its name.

    Args:
        archive: the file.
        folder: an empty folder; after a failure it may hold part of the archive.
        max_bytes: the most bytes it may hold, unpacked.
        max_files: the most files, links and folders it may hold.

    Raises:
        ArchiveError: the file is no such archive, is too large, or has an entry that must not be unpacked.
    """
    target = _Target(folder, max_bytes, max_files)
    try:
        with archive.open("rb") as file:
            is_zip = file.read(4).startswith(b"PK")
        if is_zip:
            _unpack_zip(archive, target)
        else:
            # A header takes 512 bytes; the headers of a long name take three times as much.
            with _plain(archive, max_bytes + max_files * 2048) as plain:
                _unpack_tar(plain, target)
        target.finish()
    except _DAMAGES as error:
        raise ArchiveError(f"it cannot be unpacked: {error or type(error).__name__}") from error


class _Target:
    """The folder to fill, with its limits."""

    def __init__(self, root: Path, max_bytes: int, max_files: int) -> None:
        self._root = root
        self._max_bytes, self._bytes = max_bytes, 0
        self.max_files = max_files
        self._folders: set[tuple[str, ...]] = {()}
        self._links: dict[tuple[str, ...], str] = {}
        self._files: set[tuple[str, ...]] = set()

    def folder(self, name: str) -> None:
        """Make a folder and its parents."""
        self._make(_parts(name))

    def file(self, name: str, content: IO[bytes], *, is_executable: bool) -> None:
        """Write a file."""
        parts = self._new(name)
        self._files.add(parts)
        path = self._root.joinpath(*parts)
        with open(path, "xb") as file:
            while chunk := content.read(_CHUNK):
                self._bytes += len(chunk)
                if self._bytes > self._max_bytes:
                    raise ArchiveError(f"it holds more than {self._max_bytes} bytes, which is the limit")
                file.write(chunk)
        # The replica may run as any user, and has to read, run and write its own folder.
        path.chmod(0o777 if is_executable else 0o666)

    def link(self, name: str, target: str) -> None:
        """Record a symbolic link, which `finish` makes."""
        parts = self._new(name)
        if not target or len(target) > _MAX_LINK or "\0" in target or _is_outside(parts[:-1], target):
            raise ArchiveError(f"the link {name!a} leads out of the archive, to {target[:200]!a}")
        self._links[parts] = target

    def _new(self, name: str) -> tuple[str, ...]:
        parts = _parts(name)
        if parts in self._folders or parts in self._files or parts in self._links:
            raise ArchiveError(f"{name!a} is in it twice")
        self._make(parts[:-1])
        self._count()
        return parts

    def _make(self, parts: tuple[str, ...]) -> None:
        for length in range(1, len(parts) + 1):
            above = parts[:length]
            if above in self._folders:
                continue
            if above in self._files or above in self._links:
                raise ArchiveError(f"{'/'.join(above)!a} is in it twice")
            self._count()
            path = self._root.joinpath(*above)
            path.mkdir()
            path.chmod(0o777)
            self._folders.add(above)

    def _count(self) -> None:
        if len(self._folders) + len(self._files) + len(self._links) > self.max_files:
            raise ArchiveError(f"it holds more than {self.max_files} files and folders, which is the limit")

    def finish(self) -> None:
        """Make the links, and check that none of them leads out of the folder, even through another link."""
        if not self._files:
            raise ArchiveError("there is no file in it")
        for parts, target in self._links.items():
            os.symlink(target, self._root.joinpath(*parts))
        root = os.path.realpath(self._root)
        for parts in self._links:
            path = self._root.joinpath(*parts)
            # Other errors, such as a path too long to follow, must not count as the end of the link.
            with contextlib.suppress(FileNotFoundError):
                os.path.realpath(path, strict=True)
            if not f"{os.path.realpath(path)}/".startswith(f"{root}/"):
                raise ArchiveError(f"the link {'/'.join(parts)!a} leads out of the archive")


def _parts(name: str) -> tuple[str, ...]:
    """Return the parts of a name in an archive; a name that leads out of the archive raises an error."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise ArchiveError(f"{name!a} leads out of the archive")
    return parts


def _is_outside(folder: tuple[str, ...], target: str) -> bool:
    """Return whether a link in a folder leads out of the archive by its own text."""
    depth = len(folder)
    for part in target.split("/"):
        depth += 0 if part in ("", ".") else -1 if part == ".." else 1
        if depth < 0:
            return True
    return target.startswith("/")


def _unpack_tar(plain: IO[bytes], target: _Target) -> None:
    members: dict[tuple[str, ...], tarfile.TarInfo] = {}
    with tarfile.open(fileobj=cast(IO[bytes], _Careful(plain)), mode="r:") as tar:
        for member in tar:
            if member.size < 0 or member.issparse():
                raise ArchiveError(f"{member.name!a} is no plain file")
            if member.isdir():
                target.folder(member.name)
            elif member.issym():
                target.link(member.name, member.linkname)
            elif member.isreg() or member.islnk():
                # A hard link becomes a copy of the earlier file; KeyError if there is no such file.
                content = members[_parts(member.linkname)] if member.islnk() else member
                members[_parts(member.name)] = content
                with cast(IO[bytes], tar.extractfile(content)) as stream:
                    target.file(member.name, stream, is_executable=bool(content.mode & stat.S_IXUSR))
            else:
                raise ArchiveError(f"{member.name!a} is a device or a pipe")


@contextlib.contextmanager
def _plain(archive: Path, limit: int) -> Iterator[IO[bytes]]:
    """Give a tar archive without compression: hard links require seeking back in it."""
    with archive.open("rb") as raw:
        is_packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if not is_packed:
            yield raw
            return
        with gzip.open(raw) as packed, tempfile.TemporaryFile(dir=archive.parent) as plain:
            size = 0
            while chunk := packed.read(_CHUNK):
                size += len(chunk)
                if size > limit:
                    raise ArchiveError(f"it holds more than {limit} bytes, which is the limit")
                plain.write(chunk)
            plain.seek(0)
            yield plain


class _Careful:
    """A file that lets no header cause a huge read, or a read before its beginning."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        if not 0 <= size <= _MAX_READ:
            raise ArchiveError(f"a header in it claims {size} bytes")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def _check_directory(archive: Path, max_files: int) -> None:
    """Check that a zip archive's directory fits into memory: the standard library reads all of it.

    Source: APPNOTE.TXT of PKWARE, 4.3.14 to 4.3.16.

    Raises:
        ArchiveError: the archive lists too many files.
    """
    with archive.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _DIRECTORY_END_BYTES - _MAX_COMMENT))
        end = file.read()
    # Search as the standard library does: first at the very end, since a comment may contain the same bytes.
    last = len(end) - _DIRECTORY_END_BYTES
    has_no_comment = end[last : last + 4] == _DIRECTORY_END and end[-2:] == b"\0\0"
    place = last if has_no_comment else end.rfind(_DIRECTORY_END)
    if place < 0 or len(end) < place + _DIRECTORY_END_BYTES:
        return
    (directory_bytes,) = struct.unpack_from("<L", end, place + 12)
    wide = end[max(0, place - _WIDE_LOCATOR_BYTES - _WIDE_END_BYTES) : place]
    if wide.startswith(b"PK\6\6") and len(wide) == _WIDE_LOCATOR_BYTES + _WIDE_END_BYTES:
        (directory_bytes,) = struct.unpack_from("<Q", wide, 40)
    if directory_bytes > max(max_files * _ENTRY_BYTES, _CHUNK):
        raise ArchiveError(f"it lists too many files: the list alone has {directory_bytes:,} bytes")


def _unpack_zip(archive: Path, target: _Target) -> None:
    _check_directory(archive, target.max_files)
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            if member.flag_bits & 1:
                raise ArchiveError(f"{member.filename!a} is encrypted")
            if member.is_dir():
                target.folder(member.filename)
            elif kind == stat.S_IFLNK:
                with packed.open(member) as content:
                    target.link(member.filename, os.fsdecode(content.read(_MAX_LINK + 1)))
            elif kind in (0, stat.S_IFREG):
                is_executable = bool(member.external_attr >> 16 & stat.S_IXUSR)
                with packed.open(member) as content:
                    target.file(member.filename, content, is_executable=is_executable)
            else:
                raise ArchiveError(f"{member.filename!a} is a device or a pipe")
