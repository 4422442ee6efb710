"""Columns as features read them, decoded from Arrow's: whole columns at once, no work per row in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paceline.training import errors, features
from paceline.training.input import arrow_values, missing

_LONGEST_SHOWN = 60
_EXPECTED = {"number": "a number", "integer": "an integer of 64 bits", "string": "a text in UTF-8"}
_LARGEST_INTEGER = 2**63 - 1


def decoded(column: Any, kind: features.Kind, name: str) -> Any:
    """Decode a chunked column to a dictionary array (strings), a NumPy array (numbers) or `features.Listed`.

    A missing number is NaN, a missing integer -1, a missing text null.

    Raises:
        ValueFault: a value is not of this kind, or not finite.
    """
    if isinstance(kind, features.Lists):
        return _listed(column, kind, name)
    if kind == "string":
        if not pa.types.is_dictionary(column.type):
            column = _cast(column, pa.string(), kind, name).dictionary_encode()
        return column.unify_dictionaries().combine_chunks()
    if kind == "integer":
        return arrow_values.numbers(_cast(column, pa.int64(), kind, name), missing=-1)
    values = arrow_values.numbers(_cast(column, pa.float64(), kind, name), missing=np.nan)
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise errors.ValueFault(row, name, f"holds {_shown(column, row)}, which is not finite")
    return values


def _cast(column: Any, target_type: Any, kind: str, name: str) -> Any:
    """Return the column in another type; missing values are null."""
    if column.type == target_type:
        return column
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if _has_bytes(column.type) and kind != "string":
        column = _cast(column, pa.string(), "string", name)
    if not _fits(column.type, kind):
        raise errors.ValueFault(None, name, f"is of type {column.type}, which is not {_EXPECTED[kind]}")
    if kind != "string":
        column = _plain(column, kind)
    try:
        return _converted(column, target_type)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        row = _first_fault(column, target_type)
        raise errors.ValueFault(row, name, _why(_shown(column, row), kind)) from error


def _fits(given: Any, kind: str) -> bool:
    """Return whether values of a type can be of a kind at all."""
    types = pa.types
    if types.is_null(given) or types.is_string(given) or types.is_large_string(given):
        return True
    if types.is_boolean(given) or types.is_integer(given):
        return True
    if kind == "string":
        return _has_bytes(given) or bool(types.is_floating(given))
    return bool(types.is_floating(given) or types.is_decimal(given))


def _plain(column: Any, kind: str) -> Any:
    """Return the column with null for missing values, and texts reduced to plain numbers."""
    if pa.types.is_floating(column.type):
        return _nulled(column, pc.is_nan(column)) if kind == "integer" else column
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        words = pc.utf8_trim_whitespace(column.cast(pa.string()))
        if kind == "integer":  # tables with missing values write integers as 3.0
            words = pc.replace_substring_regex(words, pattern=r"^\+?(-?[0-9]+)(\.0*)?$", replacement=r"\1")
        return _nulled(words, pc.is_in(words, value_set=arrow_values.texts(missing.WORDS)))
    return column


def _nulled(column: Any, is_null: Any) -> Any:
    return pc.if_else(is_null, pa.nulls(len(column), column.type), column)


def _converted(column: Any, wanted: Any) -> Any:
    # Integers beyond 2^53 are not exact as floats, but are accepted.
    is_exact = not (wanted == pa.float64() and pa.types.is_integer(column.type))
    return pc.cast(column, wanted, safe=is_exact)


def _first_fault(column: Any, wanted: Any) -> int:
    """Return the first row of a column that cannot be converted, found by bisection."""
    first, end = 0, len(column)
    while end - first > 1:
        middle = (first + end) // 2
        try:
            _converted(column.slice(first, middle - first), wanted)
            first = middle
        except (pa.ArrowInvalid, UnicodeDecodeError):
            end = middle
    return first


def _shown(column: Any, row: int) -> str:
    """Return a value for a message."""
    value = column.slice(row, 1).to_pylist()[0]
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _why(value: str, kind: str) -> str:
    digits = value.strip("'\"+-")
    if kind == "integer" and digits.isdecimal() and len(digits) >= len(str(_LARGEST_INTEGER)):
        return f"holds {value}, which is no signed 64-bit integer (features.Hashed takes any text)"
    return f"holds {value}, not {_EXPECTED[kind]}"


def _listed(column: Any, kind: features.Lists, name: str) -> features.Listed:
    """Take the values out of their lists; missing and empty values are left out."""
    if not _has_lists(column.type):
        column = pc.split_pattern(_cast(column, pa.string(), "string", name), kind.separator)
    lengths = arrow_values.numbers(pc.list_value_length(column), missing=0).astype(np.int64)
    values = pc.list_flatten(column)
    if pa.types.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    if _has_bytes(values.type):
        values = pc.cast(values, pa.string())
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = pc.utf8_trim_whitespace(values)
        words = arrow_values.texts(missing.WORDS - set(kind.words))
        values = _nulled(values, pc.is_in(values, value_set=words))
    given = arrow_values.numbers(pc.cast(values.is_valid(), pa.int8()), missing=0) > 0
    row = np.repeat(np.arange(len(lengths)), lengths)[given]
    try:
        found = decoded(values.filter(arrow_values.flags(given)), kind.kind, name)
    except errors.ValueFault as fault:
        raise errors.ValueFault(
            None if fault.row is None else int(row[fault.row]), name, fault.why
        ) from fault
    return features.Listed(found, np.bincount(row, minlength=len(lengths)).astype(np.int64))


def _has_bytes(kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _has_lists(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
