"""From cuts to elasticities, each with an interval.

A cut says ln(rate / base) / ln(factor). What its noise is follows from all that was measured: from cuts of
the same part, which should say the same, and from baselines, each of which should be what its neighbours are.
Both are differences of one window to the mean of the two beside it, so one standard deviation holds for both:
pooled, with Student's t for as many differences as there are.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from paceline.model.probes import Cut, Elasticity, Part

#: No rate is known better than this: reports come once a second or so, and windows are a few seconds.
LEAST_NOISE = 0.005
#: Student's t: beyond so many deviations lie 2.5 % on either side, for 1, 2, ... degrees of freedom.
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086,
)  # fmt: skip
#: For more degrees than that.
_NORMAL = 2.0


def elasticities(cuts: Sequence[Cut], baselines: Sequence[float]) -> tuple[Elasticity, ...]:
    """Return the elasticity of each part that was cut, in the order in which they were first.

    Args:
        cuts: all that were made.
        baselines: rates of the windows between them, in the order of time.
    """
    deviation, degrees = noise(cuts, baselines)
    quantile = _T[max(1, degrees) - 1] if degrees <= len(_T) else _NORMAL
    return tuple(_elasticity(part, own, deviation, quantile) for part, own in _by_part(cuts).items())


def _elasticity(part: Part, cuts: Sequence[Cut], deviation: float, quantile: float) -> Elasticity:
    """Weigh each cut by how deep it was: ln(factor) is what its noise is divided by (least squares)."""
    depths = [math.log(cut.factor) for cut in cuts]
    costs = [math.log(cut.rate / cut.base) for cut in cuts]
    weight = sum(depth**2 for depth in depths)
    value = sum(depth * cost for depth, cost in zip(depths, costs, strict=True)) / weight
    half = quantile * deviation / math.sqrt(weight)
    return Elasticity(part=part, value=value, low=value - half, high=value + half, cuts=len(cuts))


def noise(cuts: Sequence[Cut], baselines: Sequence[float]) -> tuple[float, int]:
    """Return the standard deviation of a window beside the mean of its neighbours, and degrees of freedom.

    Each baseline is in up to three differences, so they count for half as many.
    """
    squares = [difference**2 for difference in _second_differences(baselines)]
    degrees = len(squares) // 2
    variance, weight = (statistics.fmean(squares), degrees) if degrees else (0.0, 0)
    for own in _by_part(cuts).values():
        if len(own) > 1:
            found = statistics.variance([math.log(cut.rate / cut.base) for cut in own])
            variance = (variance * weight + found * (len(own) - 1)) / (weight + len(own) - 1)
            weight += len(own) - 1
    return max(LEAST_NOISE, math.sqrt(variance)), weight


def _second_differences(baselines: Sequence[float]) -> Iterator[float]:
    logs = [math.log(each) for each in baselines]
    for before, middle, after in zip(logs, logs[1:], logs[2:], strict=False):
        yield middle - (before + after) / 2


def _by_part(cuts: Sequence[Cut]) -> dict[Part, list[Cut]]:
    found: dict[Part, list[Cut]] = {}
    for cut in cuts:
        found.setdefault(cut.part, []).append(cut)
    return found
