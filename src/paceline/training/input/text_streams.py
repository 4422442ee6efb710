"""Streams of text: their compression and their byte order mark are known by their first bytes, whatever the
names of the files are. Text is unpacked while it is read.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, cast

import pyarrow as pa

from paceline.training import errors

#: What the names of compressed files end with.
SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".zip", ".zz")
_LONGEST = 6
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: The length of a byte order mark, in bytes.
MARK_BYTES = len(codecs.BOM_UTF8)
_BUFFER_BYTES = 1 << 20


def _zstandard(stream: BinaryIO) -> Any:
    return pa.CompressedInputStream(stream, "zstd")


_READERS: Mapping[bytes, tuple[str, Callable[[Any], Any]]] = {
    b"\x1f\x8b\x08": ("gzip", lambda stream: gzip.GzipFile(fileobj=stream)),
    b"BZh": ("bzip2", bz2.BZ2File),
    b"\xfd7zXZ\x00": ("xz", lzma.LZMAFile),
    b"\x28\xb5\x2f\xfd": ("Zstandard", _zstandard),
}
#: What is no stream of one file.
_REFUSED = {
    b"PK\x03\x04": "a ZIP archive",
    b"\x04\x22\x4d\x18": "compressed by LZ4",
    b"PAR1": "a Parquet file",
}
_DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError, pa.ArrowInvalid)


def unpacked(stream: BinaryIO, url: str) -> BinaryIO:
    """A stream of text with its compression taken off; the same one where there is none.

    Raises:
        InputError: it is compressed in a way that is not read here; reading too, where it is damaged.
    """
    head = stream.read(_LONGEST)
    stream.seek(0)
    for mark, what in _REFUSED.items():
        if head.startswith(mark):
            raise errors.InputError.of(url, f"this is {what}, and no text; unpack it first")
    for mark, (name, reader) in _READERS.items():
        if head.startswith(mark):
            return cast(BinaryIO, io.BufferedReader(_Unpacked(reader(stream), url, name), _BUFFER_BYTES))
    return stream


def without_mark(head: bytes, url: str) -> bytes:
    """Returns the first bytes of a text without the byte order mark of UTF-8.

    Args:
        head: at least `MARK_BYTES`, unless the text is shorter.
        url: the file of it.

    Raises:
        InputError: it is UTF-16.
    """
    if head.startswith(_UTF16_MARKS):
        raise errors.InputError.of(url, "this is UTF-16; write it as UTF-8")
    return head.removeprefix(codecs.BOM_UTF8)


class _Unpacked(io.RawIOBase):
    """What is unpacked, where damage is an error with the name of the file."""

    def __init__(self, stream: Any, url: str, name: str) -> None:
        self._stream = stream
        self._url = url
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except _DAMAGED as error:
            raise errors.InputError.of(
                self._url, f"it is compressed by {self._name}, and damaged: {error}"
            ) from error
        buffer[: len(data)] = data
        return len(data)
