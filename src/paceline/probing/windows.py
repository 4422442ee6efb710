"""What a job did in a window of time, from the reports and samples of its replicas."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence

from paceline.model.measures import intervals
from paceline.model.measures.probes import RateUnit
from paceline.model.measures.samples import Measured, Sample, StepReport, by_replica
from paceline.model.roles import Role

#: A replica that was throttled for a smaller share of the time was not held back by its quota.
FELT_SHARE = 0.02
#: A replica that uses at least this share of its cores uses all of them. Exclusive cores have no quota, so
#: throttling does not show it.
FULL = 0.95
#: A trainer stood still if its next report took more than `STOOD_TIMES` times as long as usual, and more than
#: `STOOD_SECONDS`.
STOOD_TIMES, STOOD_SECONDS = 3.0, 1.0
#: A trainer that is silent for longer has nothing more to report: it is done, or hangs.
LONGEST_STAND_SECONDS = 60.0
#: An evaluator that uses fewer cores is not evaluating: it only looks for a new checkpoint now and then.
EVALUATING_CORES = 0.1


def unit(reports: Sequence[StepReport]) -> RateUnit:
    """Return the best unit for the rate of a job among those that were reported."""
    if any(each.examples for each in reports):
        return RateUnit.EXAMPLES
    return RateUnit.STEPS if any(each.steps for each in reports) else RateUnit.BYTES


def rate(
    counted: RateUnit, reports: Iterable[StepReport], samples: Iterable[Sample], since: float, until: float
) -> float | None:
    """Return the rate of a job between two moments, a second; None: it was not measured.

    Reports come at any time, so a report whose interval is partly between the moments counts in proportion.
    Without steps, the bytes that replicas send are counted instead: each step moves the same number.
    """
    if until <= since:
        return None
    match counted:
        case RateUnit.EXAMPLES:
            found = _sum(reports, lambda each: each.examples, since, until)
        case RateUnit.STEPS:
            found = _sum(reports, lambda each: each.steps, since, until)
        case RateUnit.BYTES:
            found = _sum(samples, lambda each: each.network_sent_bytes, since, until)
    return found / (until - since) if found else None


def held_back(
    samples: Sequence[Sample], targets: Sequence[str], since: float, until: float
) -> tuple[str, ...] | None:
    """Return the targets that were throttled between two moments; None: one of them was not measured."""
    felt = []
    for target in targets:
        own = [each for each in samples if str(each.replica) == target and since < each.at <= until]
        known = [
            (each.throttled_seconds, each.interval_seconds)
            for each in own
            if each.throttled_seconds is not None
        ]
        if not known:
            return None
        if sum(throttled for throttled, _ in known) > FELT_SHARE * sum(seconds for _, seconds in known):
            felt.append(target)
    return tuple(felt)


def evaluating(samples: Sequence[Sample], since: float, until: float) -> float:
    """Return the share of the time between two moments in which an evaluator was evaluating."""
    stretches = [
        intervals.stretch(each)
        for each in samples
        if each.replica.role is Role.EVALUATOR and (each.cpu_cores or 0.0) >= EVALUATING_CORES
    ]
    return _covered(stretches, since, until)


def standing(reports: Iterable[StepReport], since: float, until: float) -> float:
    """Return the largest share of the time between two moments in which one trainer stood still.

    A trainer that saves a checkpoint, evaluates, or waits for storage takes far longer than usual until its
    next report, longer than any cut of a part makes it. A trainer that is silent up to the last moment counts
    as standing still, too.
    """
    stood = (_stood(own, until) for own in by_replica(reports).values())
    return max((_covered(stretches, since, until) for stretches in stood), default=0.0)


def _covered(stretches: Iterable[tuple[float, float]], since: float, until: float) -> float:
    """Return the share of the time between two moments that stretches cover; 0 if the time is empty."""
    clipped = ((max(since, begin), min(until, end)) for begin, end in stretches)
    within = [(begin, end) for begin, end in clipped if begin < end]
    return intervals.covered_seconds(within) / (until - since) if until > since else 0.0


def _stood(reports: Sequence[StepReport], until: float) -> Iterator[tuple[float, float]]:
    """Yield the start and the end of each time in which a trainer stood still."""
    moments = [each.at for each in reports if each.at <= until]
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    if not gaps:
        return
    least = max(STOOD_SECONDS, STOOD_TIMES * statistics.median(gaps))
    yield from (pair for pair in itertools.pairwise(moments) if pair[1] - pair[0] > least)
    if least < until - moments[-1] <= LONGEST_STAND_SECONDS:
        yield moments[-1], until


def at_limit(
    samples: Sequence[Sample], targets: Sequence[str], spans: Sequence[tuple[float, float]]
) -> tuple[str, ...] | None:
    """Return the targets that used all their cores in stretches of time; None: one of them was not measured.

    Args:
        samples: the samples of all replicas.
        targets: the names of the replicas to examine.
        spans: the start and the end of each stretch (Unix seconds).
    """
    within = [sample for sample in samples if any(since < sample.at <= until for since, until in spans)]
    always = (-math.inf, math.inf)
    held = held_back(within, targets, *always)
    if held is None:
        return None
    full = [
        target
        for target in targets
        if _used_share([sample for sample in within if str(sample.replica) == target]) >= FULL
    ]
    return tuple(target for target in targets if target in held or target in full)


def _used_share(samples: Sequence[Sample]) -> float:
    """Return the mean share of its cores that a replica used; 0 if that is not known."""
    shares = [
        each.cpu_cores / each.cpu_limit_cores
        for each in samples
        if each.cpu_cores is not None and each.cpu_limit_cores
    ]
    return statistics.fmean(shares) if shares else 0.0


def _sum(
    items: Iterable[Measured], count: Callable[[Measured], int | None], since: float, until: float
) -> float:
    total = 0.0
    for each in items:
        counted, seconds = count(each), each.interval_seconds
        if counted is None or not seconds or seconds <= 0:
            continue
        within = min(each.at, until) - max(each.at - seconds, since)
        if within > 0:
            total += counted * within / seconds
    return total
