"""Data files, opened by URL and decoded a chunk of whole columns at a time.

`locations` opens any URL (a local path, s3://, hdfs://, https://); pyarrow decodes CSV and Parquet,
TensorFlow TFRecord. Nothing here knows about trainers or batches. When pyarrow refuses a CSV file the file is
read again, slowly, to name the line.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Literal, NoReturn

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from paceline.training import columns, errors, features, locations

_CHUNK_ROWS = 65_536
_BLOCK_BYTES = 8 << 20


Format = Literal["csv", "parquet", "tfrecord"]
_SUFFIXES: Mapping[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".tfrecord": "tfrecord",
    ".tfrecords": "tfrecord",
}


@dataclass(frozen=True)
class Source:
    """Where examples are and how to decode them.

    `urls` may hold patterns with `*`. A null format goes by each file's suffix: `.parquet`, `.tfrecord`
    (perhaps `.gz` after it), or else CSV. CSV files without a header line need `column_names`; `skip_rows`
    lines at their head are ignored. Copies of remote files are kept in the `cache`, if there is one.
    """

    urls: tuple[str, ...]
    format: Format | None = None
    column_names: tuple[str, ...] = ()
    skip_rows: int = 0
    cache: locations.Cache | None = None

    def files(self) -> tuple[str, ...]:
        """Every file, patterns replaced by what they match, sorted.

        Raises:
            InputError: a pattern matches nothing, or a file does not exist.
        """
        found = [file for url in self.urls for file in locations.matches(url)]
        if not found:
            raise errors.InputError("no input files are given: set training.inputs.train in the job file")
        return tuple(sorted(found))

    def format_of(self, file: str) -> Format:
        """How this file is decoded."""
        suffix = PurePosixPath(file.removesuffix(".gz")).suffix
        return self.format or _SUFFIXES.get(suffix, "csv")


def use_threads(count: int) -> None:
    """Has pyarrow decode columns side by side in so many threads, in this process."""
    pa.set_cpu_count(count)


def count(source: Source) -> int:
    """The number of examples in all files.

    Raises:
        InputError: a file cannot be read, or there is no example in any of them.
    """
    return sum(rows(source).values())


def rows(source: Source) -> dict[str, int]:
    """The number of examples in each file: from Parquet's footer, else counted: lines that are not empty, or
    records.

    Raises:
        InputError: a file cannot be read, or there is no example in any of them.
    """
    counters = {"csv": _csv_rows, "parquet": _parquet_rows, "tfrecord": _records}
    found = {file: max(0, counters[source.format_of(file)](source, file)) for file in source.files()}
    if not sum(found.values()):
        raise errors.InputError(f"{', '.join(found)}: no examples in {'it' if len(found) == 1 else 'them'}")
    return found


def chunks(
    source: Source, file: str, kinds: Mapping[str, features.Kind], first: int = 0
) -> Iterator[dict[str, Any]]:
    """Decodes a file from row `first` on: dictionaries of columns by name, each chunk some ten thousand rows.

    Raises:
        InputError: the file lacks a column or a row does not fit; the message names file and line.
    """
    readers = {"csv": _csv_chunks, "parquet": _parquet_chunks, "tfrecord": _record_chunks}
    for table in readers[source.format_of(file)](source, file, kinds, first):
        if table.num_rows:
            yield {name: _decoded(table.column(name), kind, name, file) for name, kind in kinds.items()}


def _without(tables: Iterator[Any], skip: int) -> Iterator[Any]:
    """The same rows without so many of the first ones."""
    for table in tables:
        if skip < table.num_rows:
            yield table.slice(skip)
        skip = max(0, skip - table.num_rows)


def _decoded(column: Any, kind: features.Kind, name: str, file: str) -> Any:
    try:
        return columns.decoded(column, kind)
    except pa.ArrowInvalid as error:
        expected = kind.kind if isinstance(kind, features.Lists) else kind
        raise errors.InputError(f"{file}: column {name!r} does not hold {expected}s: {error}") from error


def _missing_column(file: str, name: str, known: Sequence[str]) -> NoReturn:
    raise errors.InputError(f"{file}: there is no column {name!r}{errors.did_you_mean(name, known)}")


# Parquet


def _parquet_rows(source: Source, file: str) -> int:
    with locations.opened(file, whole=False) as stream:
        return int(_parquet_file(stream, file).metadata.num_rows)


def _parquet_file(stream: Any, file: str) -> Any:
    try:
        return pyarrow.parquet.ParquetFile(stream)
    except pa.ArrowInvalid as error:
        raise errors.InputError(f"{file}: this is not a whole Parquet file: {error}") from error


def _parquet_chunks(
    source: Source, file: str, kinds: Mapping[str, features.Kind], first: int
) -> Iterator[Any]:
    with locations.opened(file, source.cache) as stream:
        opened = _parquet_file(stream, file)
        for name in kinds:
            if name not in opened.schema_arrow.names:
                _missing_column(file, name, opened.schema_arrow.names)
        group = 0
        while group < opened.num_row_groups and first >= opened.metadata.row_group(group).num_rows:
            first -= opened.metadata.row_group(group).num_rows
            group += 1
        groups = range(group, opened.num_row_groups)
        batches = opened.iter_batches(batch_size=_CHUNK_ROWS, row_groups=groups, columns=list(kinds))
        try:
            yield from _without((pa.Table.from_batches([batch]) for batch in batches), first)
        except (pa.ArrowInvalid, OSError) as error:
            raise errors.InputError(f"{file}: this Parquet file is damaged: {error}") from error


# TFRecord


def _records(source: Source, file: str) -> int:
    from paceline.training import records  # imports TensorFlow, which other formats need not

    with locations.local(file, source.cache) as path:
        return records.count(path, file)


def _record_chunks(
    source: Source, file: str, kinds: Mapping[str, features.Kind], first: int
) -> Iterator[Any]:
    from paceline.training import records

    with locations.local(file, source.cache) as path:
        yield from records.tables(path, file, kinds, first)


# CSV


def _csv_rows(source: Source, file: str) -> int:
    lines, inside = 0, False
    with locations.opened(file, source.cache) as stream:
        while block := stream.read(_BLOCK_BYTES):
            lines += len(re.findall(rb"[^\r\n]+", block)) - (inside and block[:1] not in (b"\r", b"\n"))
            inside = block[-1:] not in (b"\r", b"\n")
    return lines - source.skip_rows - (0 if source.column_names else 1)


def _csv_chunks(source: Source, file: str, kinds: Mapping[str, features.Kind], first: int) -> Iterator[Any]:
    yield from _without(_csv_tables(source, file, kinds), first)


def _csv_tables(source: Source, file: str, kinds: Mapping[str, features.Kind]) -> Iterator[Any]:
    types: dict[features.Kind, Any] = {
        "number": pa.float64(),
        "integer": pa.int64(),
        "string": pa.dictionary(pa.int32(), pa.string()),
    }
    names = source.column_names or _csv_header(source, file)
    for name in kinds:
        if name not in names:
            _missing_column(file, name, names)
    wanted = pyarrow.csv.ConvertOptions(
        column_types={name: types.get(kind, pa.string()) for name, kind in kinds.items()},
        include_columns=list(kinds),
    )
    reading = pyarrow.csv.ReadOptions(
        column_names=list(names), skip_rows=source.skip_rows + (0 if source.column_names else 1)
    )
    with locations.opened(file, source.cache) as stream:
        try:
            for block in _csv_blocks(stream, file):
                reading.block_size = block.size  # one chunk a block, however long its lines are
                yield pyarrow.csv.read_csv(pa.BufferReader(block), reading, convert_options=wanted)
                reading.skip_rows = 0
        except pa.ArrowInvalid as error:
            _explain(source, file, names, kinds, error)


def _csv_blocks(stream: BinaryIO, file: str) -> Iterator[Any]:
    """Whole lines, some megabytes at a time, in memory of pyarrow's own.

    pyarrow could read the stream itself. But then its threads call Python, and nobody waits for them: a
    process that ends meanwhile is aborted.
    """
    rest = b""
    while data := stream.read(_BLOCK_BYTES):
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if end:
            yield _buffer(rest, data[:end])
            rest = b""
        rest += data[end:]
        if len(rest) > _BLOCK_BYTES:
            raise errors.InputError(f"{file}: a line has more than {_BLOCK_BYTES:,} bytes; is this CSV?")
    if rest:
        yield _buffer(rest, b"\n")


def _buffer(*parts: bytes) -> Any:
    stream = pa.BufferOutputStream()
    for part in parts:
        stream.write(part)
    return stream.getvalue()


def _csv_header(source: Source, file: str) -> tuple[str, ...]:
    for _, row in _csv_lines(source, file):
        return tuple(name.strip() for name in row)
    raise errors.InputError(f"{file}: the file is empty, not even a header line")


def _csv_lines(source: Source, file: str) -> Iterator[tuple[int, list[str]]]:
    """Line number (from 1) and fields of each line that is not empty, after the skipped ones."""
    with locations.opened(file, source.cache) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="")
        for number, line in enumerate(text, start=1):
            if number > source.skip_rows and line.strip("\r\n"):
                yield number, next(csv.reader([line]))


def _explain(
    source: Source, file: str, names: Sequence[str], kinds: Mapping[str, features.Kind], error: Exception
) -> NoReturn:
    """Finds the line that pyarrow could not decode."""
    for position, (number, row) in enumerate(_csv_lines(source, file)):
        if position == 0 and not source.column_names:
            continue
        if len(row) != len(names):
            raise errors.InputError(
                f"{file}:{number}: {len(row)} fields where {len(names)} are expected"
            ) from error
        for name, value in zip(names, row, strict=True):
            if kinds.get(name) in ("number", "integer") and not _is_number(value):
                raise errors.InputError(
                    f"{file}:{number}: column {name!r} holds {value!r}, not a number"
                ) from error
    raise errors.InputError(f"{file}: {error}") from error


def _is_number(text: str) -> bool:
    text = text.strip()
    try:
        float(text or "nan")
    except ValueError:
        return text in pyarrow.csv.ConvertOptions().null_values
    return True
