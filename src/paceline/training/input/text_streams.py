"""Streams of text, unpacked while they are read.

Compression and byte order mark are recognised by the first bytes, whatever the names of the files are.
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

#: Suffixes of compressed files.
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
#: Formats that are not a supported stream of text.
_REFUSED = {
    b"PK\x03\x04": "a ZIP archive",
    b"\x04\x22\x4d\x18": "compressed by LZ4",
    b"PAR1": "a Parquet file",
}
_DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError, pa.ArrowInvalid)


def unpacked(stream: BinaryIO, url: str) -> BinaryIO:
    """Return a stream of text with its compression removed; the same stream if it has none.

    Raises:
        InputError: the stream is compressed in an unsupported way; also while reading, if it is damaged.
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
    """Return the first bytes of a text without the byte order mark of UTF-8.

    Args:
        head: at least `MARK_BYTES`, unless the text is shorter.
        url: the file of the text.

    Raises:
        InputError: the text is UTF-16.
    """
    if head.startswith(_UTF16_MARKS):
        raise errors.InputError.of(url, "this is UTF-16; write it as UTF-8")
    return head.removeprefix(codecs.BOM_UTF8)


class _Unpacked(io.RawIOBase):
    """An unpacked stream that raises an error with the name of the file if it is damaged."""

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
