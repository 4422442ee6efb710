"""Elasticities with intervals, estimated from cuts.

The elasticity by one cut is ln(rate / base) / ln(factor). The noise follows from all measurements: from cuts
of the same part, which should agree, and from baselines, each of which should equal its neighbours. Both are
differences between a window and the mean of the two windows beside it, so one standard deviation holds for
both. It is pooled, with Student's t for the number of differences.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from paceline.model import deviations
from paceline.model.jobs.adjustments import Knob
from paceline.model.measures.probes import Cut, CutPart, Elasticity

#: No rate is known more exactly: reports come about once a second, and windows are a few seconds long.
LEAST_NOISE = 0.005
#: The median of the absolute value of a normal deviate, in standard deviations.
_MEDIAN = 0.6745


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PartEstimates:
    """The results of all cuts so far.

    Attributes:
        elasticities: the elasticities of the parts that were cut, and of their targets that the cuts held
            back, or did not hold back.
        felt: for each part that was cut, the targets that the cuts held back, if that can be seen.
        below_limit: replicas whose cores were cut although they never used all their cores.
    """

    elasticities: Mapping[CutPart, Elasticity] = dataclasses.field(default_factory=dict)
    felt: Mapping[CutPart, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    below_limit: frozenset[str] = frozenset()

    def inferred(self, whole: Elasticity, others: Sequence[Elasticity], part: CutPart) -> Elasticity:
        """Return the elasticity of the only part of a whole that was not cut: the whole minus the others.

        The rate is taken as a smooth function of all shares, so elasticities add up.
        """
        value = whole.value - sum(each.value for each in others)
        half = math.hypot(*((each.high - each.low) / 2 for each in (whole, *others)))
        return Elasticity(
            part=part,
            value=value,
            low=value - half,
            high=value + half,
            cuts=0,
            at_limit=_is_at_limit(part, self.below_limit),
        )


def known(cuts: Sequence[Cut], baselines: Sequence[float]) -> PartEstimates:
    """Return what cuts show about parts.

    A cut that did not hold back some targets is a cut of the others alone. A cut that held back no target
    shows that the part decides nothing, whatever the rate did meanwhile. A part that does not use all its
    resources does not bind, even if a cut by more than it can spare costs something.

    Args:
        cuts: all cuts that were made.
        baselines: the rates of the windows between them, in the order of time.
    """
    felt: dict[CutPart, tuple[str, ...]] = {}
    for cut in cuts:
        if cut.felt is not None:
            before = felt.get(cut.part, ())
            felt[cut.part] = tuple(target for target in cut.part.targets if target in (*before, *cut.felt))
    real = [dataclasses.replace(cut, part=_felt(cut.part, felt)) for cut in cuts if felt.get(cut.part) != ()]
    deviation, degrees = noise(real, baselines)
    quantile = deviations.students_t(0.95, degrees)
    elasticities = {
        part: _elasticity(part, part_cuts, deviation, quantile) for part, part_cuts in _by_part(real).items()
    }
    below = _below_limit(cuts)
    for part, part_cuts in _by_part(cuts).items():
        there = felt.get(part, part.targets)
        rest = tuple(target for target in part.targets if target not in there)
        if rest:
            elasticities.setdefault(
                CutPart(part.knob, rest), _nothing(CutPart(part.knob, rest), len(part_cuts))
            )
        elasticities[part] = (
            dataclasses.replace(elasticities[CutPart(part.knob, there)], part=part)
            if there
            else _nothing(part, len(part_cuts))
        )
    return PartEstimates(
        elasticities={
            part: dataclasses.replace(elasticity, at_limit=_is_at_limit(part, below))
            for part, elasticity in elasticities.items()
        },
        felt=felt,
        below_limit=below,
    )


def _below_limit(cuts: Sequence[Cut]) -> frozenset[str]:
    """Return the replicas whose cores were cut, and that did not use all their cores at any of these cuts."""
    own = [cut for cut in cuts if cut.part.knob is Knob.CPU]
    at_limit = {name for cut in own for name in (cut.part.targets if cut.at_limit is None else cut.at_limit)}
    return frozenset(name for cut in own for name in cut.part.targets if name not in at_limit)


def _is_at_limit(part: CutPart, below: frozenset[str]) -> bool:
    return part.knob is not Knob.CPU or not below.issuperset(part.targets)


def _felt(part: CutPart, felt: Mapping[CutPart, tuple[str, ...]]) -> CutPart:
    return CutPart(part.knob, felt.get(part, part.targets))


def _nothing(part: CutPart, cuts: int) -> Elasticity:
    return Elasticity(part=part, value=0.0, low=0.0, high=0.0, cuts=cuts)


def _elasticity(part: CutPart, cuts: Sequence[Cut], deviation: float, quantile: float) -> Elasticity:
    """Return the least-squares elasticity of cuts; deep cuts count more: noise is divided by ln(factor)."""
    depths = [math.log(cut.factor) for cut in cuts]
    costs = [math.log(cut.rate / cut.base) for cut in cuts]
    weight = sum(depth**2 for depth in depths)
    value = sum(depth * cost for depth, cost in zip(depths, costs, strict=True)) / weight
    half = quantile * deviation / math.sqrt(weight)
    return Elasticity(part=part, value=value, low=value - half, high=value + half, cuts=len(cuts))


def noise(cuts: Sequence[Cut], baselines: Sequence[float]) -> tuple[float, int]:
    """Return the standard deviation of a window from the mean of its neighbours, and the degrees of freedom.

    For baselines it comes from the median, as a job may just have begun, or have saved meanwhile. Each
    baseline is in up to three differences, so they count as half as many degrees of freedom.
    """
    sizes = [abs(difference) for difference in _second_differences(baselines)]
    degrees = len(sizes) // 2
    variance, weight = ((statistics.median(sizes) / _MEDIAN) ** 2, degrees) if degrees else (0.0, 0)
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


def _by_part(cuts: Sequence[Cut]) -> dict[CutPart, list[Cut]]:
    found: dict[CutPart, list[Cut]] = {}
    for cut in cuts:
        found.setdefault(cut.part, []).append(cut)
    return found
