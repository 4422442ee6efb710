"""Comparisons of an experiment's variants with its baseline: speed-ups, and whether they are certain."""

from __future__ import annotations

import dataclasses
import enum
import math
import statistics
from collections.abc import Iterator

from paceline.model.studies.experiments import Experiment
from paceline.model.studies.studies import TrialPair
from paceline.model.studies.tunings import Objective
from paceline.tuning import judgements

#: Variants within this factor of each other count as equal: less is not worth a change of the job.
SAME = 1.1


class VariantVerdict(enum.StrEnum):
    """The result for a variant, compared with the baseline."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no difference"
    NOT_ENOUGH = "not enough data"
    FAILED = "failed"
    BASELINE = "baseline"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A variant compared with the baseline; None: not measured.

    Attributes:
        variant: the name of the variant.
        runs: the number of its runs that trained.
        examples_per_second: the mean, the least and the highest speed of these runs.
        times: the factor on the baseline's speed in the same round (geometric mean), with its interval of
            90 %.
        effect: this difference in standard deviations of a single run, for logarithms (Cohen 1988).
        causes: the causes that were found in its runs, each once, the most frequent first.
    """

    variant: str
    runs: int
    examples_per_second: tuple[float, float, float] | None
    times: tuple[float, float, float] | None
    effect: float | None
    verdict: VariantVerdict
    causes: tuple[str, ...]


def compared(experiment: Experiment) -> tuple[Comparison, ...]:
    """Return the comparison of every variant with the baseline, in the order of the variants."""
    return tuple(_compared(experiment, each.name) for each in experiment.variants)


def _compared(experiment: Experiment, variant: str) -> Comparison:
    repeats = [repeat for repeat in experiment.done if repeat.variant == variant]
    speeds = [repeat.outcome.speed for repeat in repeats if repeat.outcome.speed]
    causes = [repeat.cause for repeat in repeats if repeat.cause]
    pairs = list(_pairs(experiment, variant))
    times = judgements.proven(Objective(), pairs)
    is_baseline = variant == experiment.baseline
    variant_verdict = (
        VariantVerdict.BASELINE if is_baseline else verdict(times, has_failed=bool(repeats) and not speeds)
    )
    return Comparison(
        variant=variant,
        runs=len(speeds),
        examples_per_second=(statistics.mean(speeds), min(speeds), max(speeds)) if speeds else None,
        times=None if is_baseline else times,
        effect=None if is_baseline or times is None else _effect(pairs, times[0]),
        verdict=variant_verdict,
        causes=tuple(sorted(set(causes), key=lambda cause: (-causes.count(cause), cause))),
    )


def _pairs(experiment: Experiment, variant: str) -> Iterator[TrialPair]:
    """Yield the runs of the same round as pairs: changes between rounds affect both of them."""
    outcomes = {(each.variant, each.number): each.outcome for each in experiment.done if each.outcome.speed}
    for number in range(experiment.repeats):
        before, after = outcomes.get((experiment.baseline, number)), outcomes.get((variant, number))
        if before is not None and after is not None:
            yield TrialPair(before=before, after=after)


def verdict(times: tuple[float, float, float] | None, *, has_failed: bool = False) -> VariantVerdict:
    """Return the verdict from a speed-up with its interval."""
    if times is None:
        return VariantVerdict.FAILED if has_failed else VariantVerdict.NOT_ENOUGH
    _, low, high = times
    if low >= 1 / SAME and high <= SAME:
        return VariantVerdict.NO_DIFFERENCE
    if low > 1:
        return VariantVerdict.FASTER
    return VariantVerdict.SLOWER if high < 1 else VariantVerdict.NOT_ENOUGH


def _effect(pairs: list[TrialPair], times: float) -> float | None:
    """Return Cohen's d; the standard deviation is at least the ordinary spread of runs."""
    spread = judgements.RUN_SPREAD
    for side in ("before", "after"):
        logs = [math.log(getattr(each, side).speed) for each in pairs]
        spread = max(spread, statistics.stdev(logs) if len(logs) > 1 else 0.0)
    return math.log(times) / spread
