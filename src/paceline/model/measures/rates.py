"""Rates and means of measurements, over the time in which they were made.

Missing values are left out of both the count and the time, so that they never count as 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from paceline.model.measures.samples import Sample


class Timed(Protocol):
    """A measurement over an interval; None: the interval is not known."""

    @property
    def interval_seconds(self) -> float | None:
        """The length of the interval."""


_Timed = TypeVar("_Timed", bound=Timed)
_Item = TypeVar("_Item")
_Value = TypeVar("_Value", int, float)


def rate(items: Iterable[_Timed], count: Callable[[_Timed], float | None]) -> float | None:
    """Return counts per second, over the seconds in which they were counted; None: nothing was counted."""
    counted = seconds = 0.0
    for item in items:
        value = count(item)
        if value is not None and item.interval_seconds and item.interval_seconds > 0:
            counted += value
            seconds += item.interval_seconds
    return quotient(counted, seconds)


def time_mean(samples: Iterable[Sample], gauge: Callable[[Sample], float | None]) -> float | None:
    """Return the mean over time of a value that is itself a mean over each interval."""

    def weighted(sample: Sample) -> float | None:
        value = gauge(sample)
        return None if value is None else value * sample.interval_seconds

    return rate(samples, weighted)


def quotient(counted: float, seconds: float) -> float | None:
    """Return a count per second; None: there is no time, or the result is not finite."""
    if seconds <= 0:
        return None
    result = counted / seconds
    return result if math.isfinite(result) else None


def total(values: Iterable[_Value | None]) -> _Value | None:
    """Return the sum of the values that were measured; None: no value was."""
    measured = [value for value in values if value is not None]
    return sum(measured) if measured else None


def latest(items: Sequence[_Item], gauge: Callable[[_Item], _Value | None]) -> _Value | None:
    """Return the last measured value of items in the order of time; None: there is none."""
    return next((value for item in reversed(items) if (value := gauge(item)) is not None), None)


def switches(sample: Sample) -> int | None:
    """Return the voluntary and involuntary context switches together; None unless both were measured."""
    if sample.voluntary_switches is None or sample.involuntary_switches is None:
        return None
    return sample.voluntary_switches + sample.involuntary_switches
