"""Traces as one table of columns, their form on disk, and back.

A row is a split, a transfer, an operation, an event or a clock; columns that its kind does not have are None.
Values that hold for the whole trace are kept beside the table, as text labels.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.model import outside
from paceline.model.columns import fields
from paceline.model.traces.traced_steps import ClockOffset, Event, Operation, Split, Trace, Transfer

#: The version of the table's form; a reader refuses any other.
VERSION = "1"

_TABLES: Mapping[str, tuple[str, type]] = {
    "split": ("splits", Split),
    "transfer": ("transfers", Transfer),
    "operation": ("operations", Operation),
    "event": ("events", Event),
    "clock": ("clocks", ClockOffset),
}
_ROW = "row"


#: The columns and the type of their values: str, int or float.
COLUMNS: Mapping[str, type] = {
    _ROW: str,
    **{
        name: str if issubclass(wanted, str) else wanted
        for _, kind in _TABLES.values()
        for name, (wanted, _) in fields(kind).items()
    },
}


def columns(trace: Trace) -> dict[str, list[Any]]:
    """Return the columns of a trace, all of one length."""
    rows = [
        {_ROW: row, **{field.name: getattr(value, field.name) for field in dataclasses.fields(value)}}
        for row, (attribute, _) in _TABLES.items()
        for value in getattr(trace, attribute)
    ]
    return {name: [row.get(name) for row in rows] for name in COLUMNS}


def labels(trace: Trace) -> dict[str, str]:
    """Return the labels: the values that hold for the whole trace."""
    untraced = trace.untraced_step_microseconds
    return {
        "version": VERSION,
        "trainer": trace.trainer,
        "attempt": str(trace.attempt),
        "at": repr(trace.at),
        "untraced_step_microseconds": "" if untraced is None else repr(untraced),
    }


def trace(found: Mapping[str, Sequence[Any]], labelled: Mapping[str, str]) -> Trace:
    """Return the trace that columns and labels describe.

    Raises:
        ValueError: they do not describe a trace; the message says why.
    """
    try:
        if labelled["version"] != VERSION:
            raise ValueError(f"it has version {labelled['version']!r}, and this Paceline reads {VERSION!r}")
        untraced = labelled["untraced_step_microseconds"]
        values: dict[str, list[Any]] = {attribute: [] for attribute, _ in _TABLES.values()}
        for number, row in enumerate(found[_ROW]):
            attribute, kind = _TABLES[row]
            given = {name: found[name][number] for name in fields(kind)}
            values[attribute].append(_value(kind, given))
        return Trace(
            trainer=labelled["trainer"],
            attempt=int(labelled["attempt"]),
            at=outside.moment(float(labelled["at"])),
            untraced_step_microseconds=float(untraced) if untraced else None,
            **{attribute: tuple(rows) for attribute, rows in values.items()},
        )
    except KeyError as error:
        raise ValueError(f"it lacks {error.args[0]!r}, or does not know it") from error
    except (IndexError, TypeError) as error:
        raise ValueError(f"a column has another length or type: {error}") from error


def _value(kind: type, given: Mapping[str, Any]) -> Any:
    values = {}
    for name, (wanted, optional) in fields(kind).items():
        value = given[name]
        if value is None and not optional:
            raise ValueError(f"{name} is missing in a row")
        if value is not None:
            value = wanted(value) if issubclass(wanted, str) and isinstance(value, str) else value
            if not isinstance(value, wanted) or (isinstance(value, float) and not math.isfinite(value)):
                raise ValueError(f"{name} is {value!r}")
            if name.endswith("_at"):
                outside.moment(value)
        values[name] = value
    return kind(**values)
