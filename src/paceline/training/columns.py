"""Columns as features read them, decoded from Arrow's: whole columns at once, no work per row in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paceline.training import features


def decoded(column: Any, kind: features.Kind) -> Any:
    """Decodes a chunked column to a dictionary array (strings), a NumPy array (numbers) or `features.Listed`.

    Raises:
        pyarrow.ArrowInvalid: a value is not of this kind.
    """
    if isinstance(kind, features.Lists):
        return _listed(column, kind)
    if kind == "string":
        if not pa.types.is_dictionary(column.type):
            column = pc.cast(column, pa.string()).dictionary_encode()
        return column.unify_dictionaries().combine_chunks()
    if kind == "integer":
        return pc.cast(column, pa.int64()).fill_null(-1).to_numpy()
    return np.asarray(pc.cast(column, pa.float64()).to_numpy(), dtype=np.float64)


def _listed(column: Any, kind: features.Lists) -> features.Listed:
    """Takes the values out of their lists; missing and empty ones are none."""
    if not _has_lists(column.type):
        column = pc.split_pattern(pc.cast(column, pa.string()), kind.separator)
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
    values = pc.list_flatten(column)
    if pa.types.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    given = values.is_valid()
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = pc.utf8_trim_whitespace(values)
        given = pc.fill_null(pc.not_equal(values, ""), False)
    row = np.repeat(np.arange(len(lengths)), lengths)[given.to_numpy()]
    return features.Listed(
        decoded(values.filter(given), kind.kind), np.bincount(row, minlength=len(lengths)).astype(np.int64)
    )


def _has_lists(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
