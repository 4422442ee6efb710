"""CSV files: which of their bytes are rows, decoded by pyarrow some megabytes at a time.

This module alone defines what a row is, for counting, for decoding and for the places in messages: a line
that is not empty, or several lines if a quoted field contains line breaks. A quote opens a field only at its
beginning (RFC 4180, and pyarrow). Files may be compressed, and may begin with the byte order mark of UTF-8.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from paceline.training import errors, features
from paceline.training.input import locations, missing, text_streams

_BLOCK_BYTES = 8 << 20
_LONGEST_ROW_BYTES = 8 << 20
#: A quoted field; one that is not closed extends to the end.
_QUOTED = re.compile(rb'(?:\A|(?<=[,\r\n]))"[^"]*+(?:""[^"]*+)*+("?)')
_LINE = re.compile(rb"[^\r\n]*+(?:\r\n|\r|\n)")
#: Field separators that other programs write.
_OTHER_SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "bars"}
_QUOTE, _COMMA, _NEW_LINE, _RETURN = b'",\n\r'


Places = npt.NDArray[np.int64]


class _Block(NamedTuple):
    """Whole rows of a file: their bytes, where each row ends, and the line of the first row."""

    data: bytes
    ends: Places
    line: int

    def row(self, number: int) -> bytes:
        """Return the bytes of a row."""
        return self.data[self._first_of(number) : int(self.ends[number])]

    def line_of(self, number: int) -> int:
        """Return the line in which a row begins."""
        return self.line + _lines(self.data[: self._first_of(number)])

    def _first_of(self, number: int) -> int:
        return _first_of_row(self.data, int(self.ends[number - 1]) if number else 0)


@dataclass(frozen=True)
class CsvFile:
    """A CSV file with a header, or with `column_names`; `skip_rows` lines at its start are ignored."""

    url: str
    cache: locations.Cache | None
    column_names: tuple[str, ...]
    skip_rows: int

    def rows(self, kinds: Mapping[str, features.Kind]) -> int:
        """Return the number of rows, without the header.

        Raises:
            InputError: the file cannot be read or lacks a column, or a quoted field does not end.
        """
        found = 0
        for block in self._blocks():
            if not found:
                self._check(self.column_names or self._header(block), kinds)
            found += len(block.ends)
        return max(0, found - self._header_rows)

    def tables(self, kinds: Mapping[str, features.Kind], first: int) -> Iterator[pa.Table]:
        """Yield the columns of those names from row `first` on, some megabytes of the file at a time.

        Raises:
            InputError: the file lacks a column, or a row has too few or too many fields; the message has the
                line.
        """
        names: tuple[str, ...] = self.column_names
        for block in self._blocks():
            headers = 0
            if not names:
                names, headers = self._header(block), 1
            self._check(names, kinds)
            skipped = headers + first
            if skipped < len(block.ends):
                begin = int(block.ends[skipped - 1]) if skipped else 0
                yield self._table(block, begin, names, kinds)
            first = max(0, skipped - len(block.ends))

    def place(self, row: int) -> str:
        """Return where a row is, for messages: the file and the line.

        Raises:
            InputError: the file can no longer be read.
        """
        row += self._header_rows
        for block in self._blocks():
            if row < len(block.ends):
                return errors.place(self.url, block.line_of(row))
            row -= len(block.ends)
        return errors.place(self.url)

    @property
    def _header_rows(self) -> int:
        return 0 if self.column_names else 1

    def _blocks(self) -> Iterator[_Block]:
        """Yield all rows, some megabytes at a time."""
        with locations.opened(self.url, self.cache) as raw:
            stream = text_streams.unpacked(raw, self.url)
            rest, line = self._without_skipped(stream, self._head(stream))
            is_last = False
            while not is_last:
                read = _whole_breaks(stream, _BLOCK_BYTES)
                is_last = not read
                data = rest + read + (b"\n" if is_last and rest else b"")
                breaks, is_open = _breaks(data)
                ends = _row_ends(breaks)
                if is_last and is_open:
                    why = "a quoted field begins in this row and does not end"
                    self._refuse(_Block(data, ends, line).line_of(len(ends)), why)
                if len(ends):
                    end = int(ends[-1])
                    yield _Block(data[:end], ends, line)
                    line += _lines(data[:end])
                    rest = data[end:]
                else:
                    rest = data
                if len(rest) > _LONGEST_ROW_BYTES:
                    self._refuse_long(line + _lines(rest[: _first_of_row(rest, 0)]), rest)

    def _head(self, stream: BinaryIO) -> bytes:
        """Return the first bytes, without the byte order mark of UTF-8."""
        return text_streams.without_mark(_whole_breaks(stream, text_streams.MARK_BYTES), self.url)

    def _without_skipped(self, stream: BinaryIO, head: bytes) -> tuple[bytes, int]:
        """Return what was read after the skipped lines, and the number of its first line."""
        data, at, skipped = head, 0, 0
        while skipped < self.skip_rows:
            found = _LINE.match(data, at)
            if found:
                at, skipped = found.end(), skipped + 1
                continue
            data, at = data[at:], 0
            if len(data) > _LONGEST_ROW_BYTES:
                self._refuse_long(skipped + 1, data)
            read = _whole_breaks(stream, _BLOCK_BYTES)
            if not read:
                return b"", skipped + 1
            data += read
        return data[at:], skipped + 1

    def _header(self, block: _Block) -> tuple[str, ...]:
        return tuple(name.strip() for name in _fields(block.row(0).decode(errors="replace")))

    def _check(self, names: Sequence[str], kinds: Mapping[str, features.Kind]) -> None:
        separator = _separator(names[0]) if len(names) == 1 else None
        if separator and names[0] not in kinds:
            raise errors.InputError.of(
                self.url, f"the header has {separator} and no commas; columns of CSV are separated by commas"
            )
        errors.check_columns(self.url, kinds, names)

    def _table(
        self, block: _Block, begin: int, names: Sequence[str], kinds: Mapping[str, features.Kind]
    ) -> pa.Table:
        """Return the rows of a block from a byte on, typed; as texts if a value does not fit its type."""
        types = {"number": pa.float64(), "integer": pa.int64(), "string": _WORDS}
        fast = {
            name: pa.string() if isinstance(kind, features.Lists) else types[kind]
            for name, kind in kinds.items()
        }
        for wanted in (fast, dict.fromkeys(kinds, pa.string())):
            try:
                return _decoded(memoryview(block.data)[begin:], names, wanted)
            except pa.ArrowInvalid as error:
                reason = error
        self._explain(block, names, kinds, reason)

    def _explain(
        self, block: _Block, names: Sequence[str], kinds: Mapping[str, features.Kind], reason: Exception
    ) -> NoReturn:
        """Find the row that pyarrow could not split, or whose bytes are not UTF-8, and raise the error."""
        for number in range(len(block.ends)):
            fields = _fields(block.row(number).decode("latin-1"))
            if len(fields) != len(names):
                separator = _separator(fields[0]) if len(fields) == 1 else None
                self._refuse(
                    block.line_of(number),
                    f"{len(fields)} field{'s' * (len(fields) != 1)} where {len(names)} are expected"
                    + (f"; the line has {separator} and no commas" if separator else ""),
                    reason,
                )
            for name, field in zip(names, fields, strict=True):
                if name in kinds:
                    try:
                        field.encode("latin-1").decode()
                    except UnicodeDecodeError as error:
                        self._refuse(block.line_of(number), f"column {name!r} is not UTF-8: {error}", error)
        raise errors.InputError.of(self.url, reason) from reason

    def _refuse_long(self, line: int, data: bytes) -> NoReturn:
        why = "a quoted field of this row has no end" if b'"' in data else "is this CSV?"
        self._refuse(line, f"a row has more than {_LONGEST_ROW_BYTES:,} bytes; {why}")

    def _refuse(self, line: int, why: str, error: Exception | None = None) -> NoReturn:
        raise errors.InputError.of(self.url, why, line=line) from error


_WORDS = pa.dictionary(pa.int32(), pa.string())


def _decoded(data: memoryview, names: Sequence[str], wanted: Mapping[str, Any]) -> pa.Table:
    """Return the columns of whole rows, in the wanted types.

    The rows are in pyarrow's own memory. pyarrow could read the file itself, but then its threads would call
    Python, and a process that ends meanwhile is aborted, as Python does not wait for these threads.
    """
    stream = pa.BufferOutputStream()
    stream.write(data)
    block = stream.getvalue()
    return pyarrow.csv.read_csv(
        pa.BufferReader(block),
        # One chunk for the whole block, however long its lines are.
        pyarrow.csv.ReadOptions(column_names=list(names), block_size=block.size),
        pyarrow.csv.ParseOptions(newlines_in_values=True),
        pyarrow.csv.ConvertOptions(
            column_types=dict(wanted), include_columns=list(wanted), null_values=sorted(missing.WORDS)
        ),
    )


def _whole_breaks(stream: BinaryIO, size: int) -> bytes:
    """Return the next `size` bytes of a stream, or one more, so that a two-character line break is whole."""
    data = stream.read(size)
    return data + stream.read(1) if data.endswith(b"\r") else data


def _breaks(data: bytes) -> tuple[Places, bool]:
    """Return where line breaks outside quotes are, and whether a quoted field continues after the last byte.

    A quote within a field that does not begin with a quote is a character like any other; if there is one,
    the fields are examined one by one.
    """
    codes = np.frombuffer(data, np.uint8)
    is_break = codes == _NEW_LINE
    if b"\r" in data:
        is_break |= codes == _RETURN
    breaks = np.flatnonzero(is_break)
    if b'"' not in data:
        return breaks, False
    quotes = np.flatnonzero(codes == _QUOTE)
    opening = quotes[::2]
    before = codes[opening - 1]  # the first byte wraps round to the last one, which is corrected below
    if opening[0] == 0:
        before[0] = _NEW_LINE
    is_plain = (before == _COMMA) | (before == _NEW_LINE) | (before == _RETURN) | (before == _QUOTE)
    if is_plain.all():
        is_inside = np.searchsorted(quotes, breaks) % 2 == 1
        return breaks[~is_inside], len(quotes) % 2 == 1
    fields = list(_QUOTED.finditer(data))
    begins = np.array([field.start() for field in fields], np.int64)
    ends = np.array([field.end() for field in fields], np.int64)
    within = np.searchsorted(begins, breaks, "right") - 1
    is_inside = (within >= 0) & (breaks < ends[within]) if fields else np.zeros(len(breaks), bool)
    return breaks[~is_inside], bool(fields) and not fields[-1][1]


def _row_ends(breaks: Places) -> Places:
    """Return where rows that are not empty end: at a line break that follows another character."""
    return breaks[np.diff(breaks, prepend=-1) > 1]


def _lines(data: bytes) -> int:
    """Return how many lines have ended, including line breaks within quotes."""
    if b"\r" not in data:
        return data.count(b"\n")
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def _first_of_row(data: bytes, end: int) -> int:
    """Return where the next row begins, after the end of another row or the start of the data."""
    while data[end : end + 1] in (b"\r", b"\n"):
        end += 1
    return end


def _fields(row: str) -> list[str]:
    return next(csv.reader(io.StringIO(row, newline="")), [])


def _separator(text: str) -> str | None:
    return next((word for character, word in _OTHER_SEPARATORS.items() if character in text), None)
