"""Robust growth rates: slopes that a few outliers do not change, with their intervals."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

#: Fewer points give no useful interval.
LEAST_POINTS = 8
#: The quantile of the normal distribution for an interval of 99 %. Successive measurements are not
#: independent, so the interval is narrower than it should be.
_QUANTILE = 2.576


class Slope(NamedTuple):
    """A slope in units a second, with its interval."""

    slope: float
    low: float
    high: float


def thinned(points: Sequence[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """Return at most ``most`` points: the medians of equally large groups of successive points."""
    count = min(most, len(points))
    edges = [len(points) * number // count for number in range(count + 1)] if count else []
    groups = [points[since:until] for since, until in itertools.pairwise(edges)]
    return [
        (statistics.median(at for at, _ in group), statistics.median(value for _, value in group))
        for group in groups
    ]


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the median of the slopes of all pairs of points (Theil 1950); None when there is no pair."""
    slopes = _slopes(points)
    return statistics.median(slopes) if slopes else None


def trend(points: Sequence[tuple[float, float]]) -> Slope | None:
    """Return the slope of points (seconds, value) with its interval; None when there are too few points.

    The slope is that of `slope`; the interval follows from Kendall's statistic (Sen 1968).
    """
    slopes, count = _slopes(points), len(points)
    if count < LEAST_POINTS or not slopes:
        return None
    spread = _QUANTILE * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(0, math.floor((len(slopes) - spread) / 2))
    high = min(len(slopes) - 1, math.ceil((len(slopes) + spread) / 2))
    return Slope(statistics.median(slopes), slopes[low], slopes[high])


def _slopes(points: Sequence[tuple[float, float]]) -> list[float]:
    """Return the slopes of all pairs of points at different times, the smallest first."""
    return sorted(
        (later[1] - sooner[1]) / (later[0] - sooner[0])
        for number, sooner in enumerate(points)
        for later in points[number + 1 :]
        if later[0] > sooner[0]
    )
