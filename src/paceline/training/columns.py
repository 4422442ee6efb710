"""Columns as features read them, decoded from Arrow's: whole columns at once, no work per row in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paceline.training import arrow_values, features


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
        return arrow_values.numbers(pc.cast(column, pa.int64()), missing=-1)
    return arrow_values.numbers(pc.cast(column, pa.float64()), missing=np.nan)


def _listed(column: Any, kind: features.Lists) -> features.Listed:
    """Takes the values out of their lists; missing and empty ones are none."""
    if not _has_lists(column.type):
        column = pc.split_pattern(pc.cast(column, pa.string()), kind.separator)
    lengths = arrow_values.numbers(pc.list_value_length(column), missing=0).astype(np.int64)
    values = pc.list_flatten(column)
    if pa.types.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = pc.utf8_trim_whitespace(values)
        given = arrow_values.numbers(pc.binary_length(values), missing=0) > 0
    else:
        given = arrow_values.numbers(pc.cast(values.is_valid(), pa.int8()), missing=0) > 0
    row = np.repeat(np.arange(len(lengths)), lengths)[given]
    return features.Listed(
        decoded(values.filter(arrow_values.flags(given)), kind.kind),
        np.bincount(row, minlength=len(lengths)).astype(np.int64),
    )


def _has_lists(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
