"""Combining the measurements of many intervals into fewer, longer intervals.

A diagnosis of an hour does not need a resolution of seconds. Columns are combined as they come out of blocks,
and only the combined rows become Python objects: an hour of 220 replicas takes one second instead of ten.
"""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paceline.model.measures.gauges import Combining
from paceline.stores import blocks
from paceline.stores.precisions import PRECISIONS

#: Rows that are combined into one: the index of the first, and the index after the last.
_Span = tuple[int, int]


def combined(columns: blocks.Columns, every_seconds: float) -> blocks.Columns:
    """Return columns of one replica and attempt with one row for each window that has measurements.

    Windows end at multiples of ``every_seconds`` (Unix time); a row belongs to the window in which its
    interval ends. Intervals and counts are summed, means are weighted by time, and every other field, ``at``
    too, keeps its last value. Values that were not measured are ignored. A count that was measured in only a
    part of the window is scaled up to the whole window, which keeps its rate. A field without any measurement
    in a window is None. Rows without an interval are not combined with rows that have one.

    Args:
        columns: columns in the order of time.
        every_seconds: length of a window.
    """
    spans = _spans(columns, every_seconds)
    seconds = columns.get("interval_seconds") or [None] * len(columns["at"])
    return {
        name: _COMBINING[PRECISIONS[name].combining](numbers, seconds, spans)
        for name, numbers in columns.items()
    }


def _spans(columns: blocks.Columns, every_seconds: float) -> list[_Span]:
    at = columns["at"]
    seconds = columns.get("interval_seconds", ())
    made, start = [], 0
    while start < len(at):
        ends_at = math.ceil(at[start] / every_seconds) * every_seconds
        end = bisect.bisect_right(at, max(ends_at, at[start]), start)
        made.append((start, end))
        start = end
    if None in seconds:
        return [part for span in made for part in _parts(span, seconds)]
    return made


def _parts(span: _Span, seconds: Sequence[Any]) -> list[_Span]:
    """Return a span, split where rows with an interval and rows without one meet."""
    found, start = [], span[0]
    for _, same in itertools.groupby(seconds[slice(*span)], key=lambda value: value is None):
        end = start + sum(1 for _ in same)
        found.append((start, end))
        start = end
    return found


def _added(numbers: Sequence[Any], _seconds: Sequence[Any], spans: Sequence[_Span]) -> Sequence[Any]:
    return [None if numbers[start] is None else sum(numbers[start:end]) for start, end in spans]


def _latest(numbers: Sequence[Any], _seconds: Sequence[Any], spans: Sequence[_Span]) -> Sequence[Any]:
    found = [numbers[end - 1] for _, end in spans]
    if None not in found:
        return found
    return [
        next((value for value in reversed(numbers[start:end]) if value is not None), None)
        for start, end in spans
    ]


def _counts(numbers: Sequence[Any], seconds: Sequence[Any], spans: Sequence[_Span]) -> Sequence[Any]:
    try:
        return [sum(numbers[start:end]) for start, end in spans]
    except TypeError:  # some are None; checking first would take as long as the sums
        return [_count(numbers[start:end], seconds[start:end]) for start, end in spans]


def _count(numbers: Sequence[Any], seconds: Sequence[Any]) -> int | float | None:
    """Return the sum of counts, scaled up to the time of all rows."""
    measured = [(value, time) for value, time in zip(numbers, seconds, strict=True) if value is not None]
    if not measured:
        return None
    total: int | float = sum(value for value, _ in measured)
    if len(measured) == len(numbers) or measured[0][1] is None:
        return total
    known = math.fsum(time for _, time in measured)
    scaled = total * math.fsum(seconds) / known if known > 0 else total
    return round(scaled) if isinstance(total, int) else scaled


def _means(numbers: Sequence[Any], seconds: Sequence[Any], spans: Sequence[_Span]) -> Sequence[Any]:
    try:
        weighted = list(map(operator.mul, numbers, seconds))
    except TypeError:
        return [_mean(numbers[start:end], seconds[start:end]) for start, end in spans]
    return [
        sum(weighted[start:end]) / total if (total := sum(seconds[start:end])) else numbers[end - 1]
        for start, end in spans
    ]


def _mean(numbers: Sequence[Any], seconds: Sequence[Any]) -> float | None:
    """Return the mean over the time in which the value was measured."""
    measured = [
        (value, time or 0.0) for value, time in zip(numbers, seconds, strict=True) if value is not None
    ]
    if not measured:
        return None
    total = math.fsum(time for _, time in measured)
    last: float = measured[-1][0]
    return math.fsum(value * time for value, time in measured) / total if total else last


_COMBINING: Mapping[Combining, Callable[[Sequence[Any], Sequence[Any], Sequence[_Span]], Sequence[Any]]] = {
    Combining.INTERVAL: _added,
    Combining.COUNT: _counts,
    Combining.MEAN: _means,
    Combining.LATEST: _latest,
}
