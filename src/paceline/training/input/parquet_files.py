"""Parquet files, decoded by pyarrow some tens of thousands of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from paceline.training import errors, features
from paceline.training.input import locations

_CHUNK_ROWS = 65_536


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file."""

    url: str
    cache: locations.Cache | None

    def rows(self, kinds: Mapping[str, features.Kind]) -> int:
        """Return the number of rows, from the footer alone.

        Raises:
            InputError: the file cannot be read, is not a whole Parquet file, or lacks a column.
        """
        with locations.opened(self.url, whole=False) as stream:
            return int(self._opened(stream, kinds).metadata.num_rows)

    def tables(self, kinds: Mapping[str, features.Kind], first: int) -> Iterator[pa.Table]:
        """Yield the columns of those names, from row `first` on.

        Raises:
            InputError: the file lacks a column, or is damaged.
        """
        with locations.opened(self.url, self.cache) as stream:
            opened = self._opened(stream, kinds)
            group = 0
            while group < opened.num_row_groups and first >= opened.metadata.row_group(group).num_rows:
                first -= opened.metadata.row_group(group).num_rows
                group += 1
            groups = range(group, opened.num_row_groups)
            batches = opened.iter_batches(batch_size=_CHUNK_ROWS, row_groups=groups, columns=list(kinds))
            try:
                for batch in batches:
                    if first < batch.num_rows:
                        yield pa.Table.from_batches([batch.slice(first)])
                    first = max(0, first - batch.num_rows)
            except (pa.ArrowInvalid, OSError) as error:
                raise errors.InputError.of(self.url, f"this Parquet file is damaged: {error}") from error

    def place(self, row: int) -> str:
        """Return where a row is, for messages: the file and the number of the row, from 1."""
        return f"{errors.shown(self.url)}: row {row + 1}"

    def _opened(self, stream: Any, kinds: Mapping[str, features.Kind]) -> Any:
        try:
            opened = pyarrow.parquet.ParquetFile(stream)
        except pa.ArrowInvalid as error:
            raise errors.InputError.of(self.url, f"this is not a whole Parquet file: {error}") from error
        errors.check_columns(self.url, kinds, opened.schema_arrow.names)
        return opened
