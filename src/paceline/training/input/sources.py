"""Data files, opened by URL and decoded a chunk of whole columns at a time.

`locations` opens any URL (a local path, s3://, hdfs://, https://); `csv_files`, `parquet_files` and
`record_files` turn the files into tables. Nothing here knows about trainers or batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal, Protocol

import pyarrow as pa

from paceline.training import errors, features
from paceline.training.input import columns, csv_files, locations, parquet_files, text_streams

Format = Literal["csv", "parquet", "tfrecord"]
_SUFFIXES: Mapping[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".tfrecord": "tfrecord",
    ".tfrecords": "tfrecord",
}


class DataFile(Protocol):
    """A file of examples in one of the formats."""

    @property
    def url(self) -> str:
        """The URL of the file."""

    def rows(self, kinds: Mapping[str, features.Kind]) -> int:
        """Return the number of examples, and check on the way that the columns of those names are there.

        Raises:
            InputError: the file cannot be read, or lacks a column.
        """

    def tables(self, kinds: Mapping[str, features.Kind], first: int) -> Iterator[pa.Table]:
        """Yield the columns of those names from row `first` on, in pieces.

        Raises:
            InputError: the file lacks a column, or a row does not fit; the message says where.
        """

    def place(self, row: int) -> str:
        """Return where a row (from 0) is, for messages."""


@dataclass(frozen=True)
class Source:
    """Where examples are and how to decode them.

    `urls` may hold patterns with `*`, and folders, which stand for all files in them. In both, files whose
    name begins with `_` or `.` are passed over, as Spark and Hive do. Without a `format`, the suffix of each
    file decides: `.parquet` or `.pq`, `.tfrecord` or `.tfrecords` (perhaps with `.gz` or the like after it),
    or else CSV. CSV files without a header line need `column_names`; `skip_rows` lines at their start are
    ignored. Copies of remote files are kept in the `cache`, if there is one.
    """

    urls: tuple[str, ...]
    format: Format | None = None
    column_names: tuple[str, ...] = ()
    skip_rows: int = 0
    cache: locations.Cache | None = None

    def files(self) -> tuple[str, ...]:
        """Return every file, sorted; patterns and folders are replaced by the files that they stand for.

        Raises:
            InputError: a pattern matches nothing, or a file does not exist.
        """
        found = [file for url in self.urls for file in locations.matches(url)]
        if not found:
            raise errors.InputError("no input files are given: set training.inputs.train in the job file")
        return tuple(sorted(found))

    def format_of(self, file: str) -> Format:
        """Return how this file is decoded."""
        path = PurePosixPath(file)
        suffix = PurePosixPath(path.stem).suffix if path.suffix in text_streams.SUFFIXES else path.suffix
        return self.format or _SUFFIXES.get(suffix, "csv")

    def opened(self, file: str) -> DataFile:
        """Return one of the files, to be read in its format."""
        match self.format_of(file):
            case "csv":
                return csv_files.CsvFile(file, self.cache, self.column_names, self.skip_rows)
            case "parquet":
                return parquet_files.ParquetFile(file, self.cache)
            case "tfrecord":
                from paceline.training.input import record_files  # imports TensorFlow, unlike the others

                return record_files.RecordFile(file, self.cache)


@dataclass(frozen=True)
class RowChunk:
    """Decoded columns of consecutive rows of a file; the first of them is row `first` (from 0)."""

    columns: features.Columns
    file: DataFile
    first: int

    def encoded(self, encoder: features.FeatureSet) -> features.Examples:
        """Return the examples of these rows.

        Raises:
            InputError: a row has no label, or a number is too large; the message says where.
        """
        try:
            return encoder.encode(self.columns)
        except errors.ValueFault as fault:
            raise _refused(self.file, self.first, fault) from fault


def use_threads(count: int) -> None:
    """Make pyarrow decode columns in parallel in `count` threads, in this process."""
    pa.set_cpu_count(count)


def count(source: Source) -> int:
    """Return the number of examples in all files.

    Raises:
        InputError: a file cannot be read, or no file has an example.
    """
    return sum(rows(source).values())


def rows(source: Source, kinds: Mapping[str, features.Kind] | None = None) -> dict[str, int]:
    """Return the number of examples in each file: from Parquet's footer, otherwise counted.

    On the way it checks that the columns of `kinds` are there.

    Raises:
        InputError: a file cannot be read or lacks a column, or no file has an example.
    """
    found = {file: source.opened(file).rows(kinds or {}) for file in source.files()}
    if not sum(found.values()):
        names = ", ".join(map(errors.shown, found))
        raise errors.InputError(f"{names}: no examples in {'it' if len(found) == 1 else 'them'}")
    return found


def chunks(
    source: Source, file: str, kinds: Mapping[str, features.Kind], first: int = 0
) -> Iterator[RowChunk]:
    """Decode a file from row `first` on, in chunks of many rows.

    Raises:
        InputError: the file lacks a column or a row does not fit; the message says where.
    """
    opened = source.opened(file)
    for table in opened.tables(kinds, first):
        if table.num_rows:
            try:
                decoded: dict[str, Any] = {
                    name: columns.decoded(table.column(name), kind, name) for name, kind in kinds.items()
                }
            except errors.ValueFault as fault:
                raise _refused(opened, first, fault) from fault
            yield RowChunk(decoded, opened, first)
            first += table.num_rows


def _refused(file: DataFile, first: int, fault: errors.ValueFault) -> errors.InputError:
    place = errors.shown(file.url) if fault.row is None else file.place(first + fault.row)
    return errors.InputError(f"{place}: {fault}")
