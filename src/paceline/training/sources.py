"""Data files, opened by URL and decoded a chunk of whole columns at a time.

fsspec opens any URL (a local path, s3://, hdfs://, https://) and pyarrow decodes CSV and Parquet. Nothing
here knows about trainers or batches. When pyarrow refuses a CSV file the file is read again, slowly, to
name the line.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import fsspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from paceline.training import columns, errors, features

_CHUNK_ROWS = 65_536
_BLOCK_BYTES = 8 << 20


@dataclass(frozen=True)
class Source:
    """Where examples are and how to decode them.

    `urls` may hold patterns with `*`. A null format goes by each file's suffix (`.parquet`, or else CSV). CSV
    files without a header line need `column_names`; `skip_rows` lines at their head are ignored.
    """

    urls: tuple[str, ...]
    format: Literal["csv", "parquet"] | None = None
    column_names: tuple[str, ...] = ()
    skip_rows: int = 0

    def files(self) -> tuple[str, ...]:
        """Every file, patterns replaced by what they match, sorted.

        Raises:
            InputError: a pattern matches nothing, or a file does not exist.
        """
        found: list[str] = []
        for url in self.urls:
            system, path = fsspec.core.url_to_fs(url)
            if "*" in url:
                matches = [system.unstrip_protocol(each) for each in system.glob(path)]
                if not matches:
                    raise errors.InputError(f"{url}: no file matches this pattern")
                found.extend(matches)
            elif not system.exists(path):
                raise errors.InputError(f"{url}: there is no such file")
            else:
                found.append(url)
        if not found:
            raise errors.InputError("no input files are given: set training.inputs.train in the job file")
        return tuple(sorted(found))

    def is_parquet(self, file: str) -> bool:
        """Whether this file is decoded as Parquet."""
        return (self.format or ("parquet" if file.endswith((".parquet", ".pq")) else "csv")) == "parquet"


def count(source: Source) -> int:
    """The number of examples in all files: from Parquet's footers, and for CSV from the lines that are not
    empty.

    Raises:
        InputError: a file cannot be read, or there is no example in any of them.
    """
    files = source.files()
    total = sum(_parquet_rows(file) if source.is_parquet(file) else _csv_rows(source, file) for file in files)
    if total <= 0:
        raise errors.InputError(f"{', '.join(files)}: no examples in {'it' if len(files) == 1 else 'them'}")
    return total


def chunks(source: Source, file: str, kinds: Mapping[str, features.Kind]) -> Iterator[dict[str, Any]]:
    """Decodes a file: dictionaries of columns by name, each chunk some ten thousand rows.

    Raises:
        InputError: the file lacks a column or a row does not fit; the message names file and line.
    """
    read = _parquet_chunks if source.is_parquet(file) else _csv_chunks
    for table in read(source, file, kinds):
        if table.num_rows:
            yield {name: _decoded(table.column(name), kind, name, file) for name, kind in kinds.items()}


def _decoded(column: Any, kind: features.Kind, name: str, file: str) -> Any:
    try:
        return columns.decoded(column, kind)
    except pa.ArrowInvalid as error:
        expected = kind.kind if isinstance(kind, features.Lists) else kind
        raise errors.InputError(f"{file}: column {name!r} does not hold {expected}s: {error}") from error


def _missing_column(file: str, name: str, known: Sequence[str]) -> NoReturn:
    raise errors.InputError(f"{file}: there is no column {name!r}{errors.did_you_mean(name, known)}")


# Parquet


def _parquet_rows(file: str) -> int:
    with fsspec.open(file, "rb") as stream:
        return int(_parquet_file(stream, file).metadata.num_rows)


def _parquet_file(stream: Any, file: str) -> Any:
    try:
        return pyarrow.parquet.ParquetFile(stream)
    except pa.ArrowInvalid as error:
        raise errors.InputError(f"{file}: this is not a whole Parquet file: {error}") from error


def _parquet_chunks(source: Source, file: str, kinds: Mapping[str, features.Kind]) -> Iterator[Any]:
    with fsspec.open(file, "rb") as stream:
        opened = _parquet_file(stream, file)
        for name in kinds:
            if name not in opened.schema_arrow.names:
                _missing_column(file, name, opened.schema_arrow.names)
        for batch in opened.iter_batches(batch_size=_CHUNK_ROWS, columns=list(kinds)):
            yield pa.Table.from_batches([batch])


# CSV


def _csv_rows(source: Source, file: str) -> int:
    lines, inside = 0, False
    with fsspec.open(file, "rb") as stream:
        while block := stream.read(_BLOCK_BYTES):
            lines += len(re.findall(rb"[^\r\n]+", block)) - (inside and block[:1] not in (b"\r", b"\n"))
            inside = block[-1:] not in (b"\r", b"\n")
    return lines - source.skip_rows - (0 if source.column_names else 1)


def _csv_chunks(source: Source, file: str, kinds: Mapping[str, features.Kind]) -> Iterator[Any]:
    types: dict[features.Kind, Any] = {
        "number": pa.float64(),
        "integer": pa.int64(),
        "string": pa.dictionary(pa.int32(), pa.string()),
    }
    names = source.column_names or _csv_header(source, file)
    for name in kinds:
        if name not in names:
            _missing_column(file, name, names)
    with fsspec.open(file, "rb") as stream:
        try:
            for batch in pyarrow.csv.open_csv(
                stream,
                pyarrow.csv.ReadOptions(
                    column_names=list(names),
                    skip_rows=source.skip_rows + (0 if source.column_names else 1),
                    block_size=_BLOCK_BYTES,
                ),
                pyarrow.csv.ParseOptions(),
                pyarrow.csv.ConvertOptions(
                    column_types={name: types.get(kind, pa.string()) for name, kind in kinds.items()},
                    include_columns=list(kinds),
                ),
            ):
                yield pa.Table.from_batches([batch])
        except pa.ArrowInvalid as error:
            _explain(source, file, names, kinds, error)


def _csv_header(source: Source, file: str) -> tuple[str, ...]:
    for _, row in _csv_lines(source, file):
        return tuple(name.strip() for name in row)
    raise errors.InputError(f"{file}: the file is empty, not even a header line")


def _csv_lines(source: Source, file: str) -> Iterator[tuple[int, list[str]]]:
    """Line number (from 1) and fields of each line that is not empty, after the skipped ones."""
    with fsspec.open(file, "rb") as stream:
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
