"""How fast trainers are compared with each other: in the same time, and with batches of the same size.

Trainers that do not wait for each other take shards from a common queue. A slow trainer takes fewer shards
and all trainers end together, so only its rate shows that it is slow.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence

from paceline.diagnosing import outlooks, trainings
from paceline.diagnosing.cases import Case
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.model.explanations.causes import Evidence, Gain
from paceline.model.measures import intervals, rates
from paceline.model.measures.intervals import Interval
from paceline.model.measures.samples import StepReport, by_replica
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.roles import Role
from paceline.model.words import listed

STRAGGLING = Threshold(
    "paces.straggling", 0.75, Unit.SHARE,
    means="A trainer is a straggler if its rate is below this share of the others' median. At a share of "
    "0.75 each of its steps takes a third longer.",
    source="it lies between a job that ByteDance's What-if (OSDI 2025) calls straggling (1.1) and DLRover's "
    "slow node (2 medians)",
)  # fmt: skip
SAME_BATCH = Threshold(
    "paces.same-batch", 0.1, Unit.SHARE,
    means="The rate of a trainer cannot be compared with the others' if the size of its batches differs by "
    "more than this share from the median.",
)  # fmt: skip
LEAST_SECONDS = Threshold(
    "paces.least-seconds", 5.0, Unit.SECONDS,
    means="The rates of trainers are compared if all trained together for at least this long. A shorter time "
    "says nothing.",
)  # fmt: skip
LEAST_REPORTS = Threshold(
    "paces.least-reports", 2, Unit.COUNT,
    means="The rate of a trainer is compared if the trainer sent at least this many reports while all "
    "trained. Fewer reports say nothing of its rate.",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrainerPace:
    """How fast one trainer is.

    Attributes:
        trainer: the trainer.
        unit: ``examples`` or ``steps``, the same for all compared trainers.
        per_second: the rate in this unit.
    """

    trainer: ReplicaSnapshot
    unit: str
    per_second: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """A trainer that is slower than the others.

    Attributes:
        pace: the pace of the trainer.
        others: the paces of the other trainers.
        usual: the median rate of the others.
    """

    pace: TrainerPace
    others: tuple[TrainerPace, ...]
    usual: float

    @property
    def trainer(self) -> ReplicaSnapshot:
        """The trainer that is slower."""
        return self.pace.trainer

    @property
    def fellows(self) -> tuple[ReplicaSnapshot, ...]:
        """The other trainers."""
        return tuple(each.trainer for each in self.others)

    @property
    def share(self) -> float:
        """The trainer's rate over the others' median."""
        return self.pace.per_second / self.usual


def paces(case: Case) -> tuple[TrainerPace, ...]:
    """Return the paces of the trainers that can be compared; empty: fewer than two can."""
    step_reports = by_replica(
        report for report in case.steps if report.steps is not None and report.interval_seconds
    )
    least_reports = case.value(LEAST_REPORTS)
    reports = {trainer: step_reports.get(trainer.replica, []) for trainer in case.trainers}
    reports = {
        trainer: trainer_reports
        for trainer, trainer_reports in reports.items()
        if len(trainer_reports) >= least_reports
    }
    if len(reports) < 2:
        return ()
    common = _common(tuple(reports.values()))
    within = {
        trainer: [report for report in trainer_reports if common.has(report)]
        for trainer, trainer_reports in reports.items()
    }
    within = {
        trainer: trainer_reports
        for trainer, trainer_reports in within.items()
        if len(trainer_reports) >= least_reports
    }
    if common.seconds < case.value(LEAST_SECONDS) or len(within) < 2:
        return ()
    counted = all(
        report.examples is not None for trainer_reports in within.values() for report in trainer_reports
    )
    if counted:
        within = _same_batch(within, case.value(SAME_BATCH))
    unit, chief = "examples" if counted else "steps", _chief(case)
    trainer_rates = (
        (trainer, _rate(trainer_reports, unit, steady=trainer is chief))
        for trainer, trainer_reports in within.items()
    )
    trainer_paces = tuple(
        TrainerPace(trainer=trainer, unit=unit, per_second=rate)
        for trainer, rate in trainer_rates
        if rate is not None
    )
    return trainer_paces if len(trainer_paces) > 1 else ()


def stragglers(case: Case) -> tuple[Straggler, ...]:
    """Return the trainers that are slower than the others."""
    known = paces(case)
    straggling = case.value(STRAGGLING)
    made = []
    for pace in known:
        others = tuple(each for each in known if each is not pace)
        usual = statistics.median(each.per_second for each in others)
        if usual > 0 and pace.per_second < straggling * usual:
            made.append(Straggler(pace=pace, others=others, usual=usual))
    return tuple(made)


def gain(case: Case, found: Sequence[Straggler]) -> Gain:
    """Return the gain if these trainers become as fast as the others.

    With a common queue of shards, the gain is what these trainers train more. A user's own script may give
    each trainer a fixed share, and all wait for the slowest: then the job becomes at most as much faster as
    the slowest trainer does.
    """
    first = found[0]
    total = sum(each.per_second for each in (first.pace, *first.others))
    evened = 1 + sum(each.usual - each.pace.per_second for each in found) / total
    if not trainings.by_library(case):
        evened = max(evened, *(1 / max(each.share, 0.01) for each in found))
    return outlooks.limited(case, evened)


def evidence(case: Case, found: Sequence[Straggler]) -> Evidence:
    """Return the evidence of the rates."""
    unit, usual = found[0].pace.unit, found[0].usual
    told = ", ".join(f"{each.trainer.replica} {each.pace.per_second:,.0f}" for each in found[:4])
    everyone = [each.trainer for each in found] + list(found[0].fellows)
    unique = tuple(dict.fromkeys(everyone))
    return Evidence(
        text=f"{unit} a second in the time that all train: {told}; the median of the others {usual:,.0f}",
        sources=(case.source(unit, unique, steps=True),),
    )


def told(found: Sequence[Straggler]) -> str:
    """Return which trainers are how slow, as the beginning of a sentence."""
    names = listed(each.trainer.replica for each in found)
    share = statistics.mean(each.share for each in found)
    return f"{names} {'trains' if len(found) == 1 else 'train'} at {share:.0%} of the others' rate"


def subjects(found: Sequence[ReplicaSnapshot]) -> tuple[str, ...]:
    """Return the names of replicas and of their emulated hosts or nodes."""
    hosts = (each.row.host for each in found if each.row.host is not None)
    return tuple(dict.fromkeys((*(str(each.replica) for each in found), *hosts)))


def _common(reports: Sequence[Sequence[StepReport]]) -> Interval:
    """Return the time in which all train: from the last trainer's first step to the first trainer's last."""
    since = max(intervals.stretch(own[0])[0] for own in reports)
    return Interval(since=since, until=min(own[-1].at for own in reports))


def _same_batch(
    within: dict[ReplicaSnapshot, list[StepReport]], most_difference: float
) -> dict[ReplicaSnapshot, list[StepReport]]:
    """Return the trainers whose batches have the usual size, with their reports.

    Args:
        within: the reports of each trainer.
        most_difference: by which share of the usual size the size of a trainer's batches may differ.
    """
    sizes = {}
    for each, own in within.items():
        steps = sum(report.steps or 0 for report in own)
        if steps:
            sizes[each] = sum(report.examples or 0 for report in own) / steps
    usual = statistics.median(sizes.values()) if sizes else 0.0
    return {
        each: own
        for each, own in within.items()
        if each not in sizes or abs(sizes[each] - usual) <= most_difference * usual
    }


def _chief(case: Case) -> ReplicaSnapshot | None:
    """Return the trainer that also saves the model: the chief, or else the first worker."""
    chiefs = [each for each in case.trainers if each.replica.role is Role.CHIEF]
    return next(iter((*chiefs, *case.trainers)), None)


def _rate(reports: Sequence[StepReport], unit: str, *, steady: bool) -> float | None:
    """Return a trainer's examples or steps per second.

    Args:
        reports: the reports of the trainer.
        unit: ``examples`` or ``steps``.
        steady: whether to return the median rate over time if it is higher than the mean: the pauses in which
            a chief saves the model do not count as its pace.
    """

    def count(report: StepReport) -> float | None:
        return report.examples if unit == "examples" else report.steps

    mean = rates.rate(reports, count)
    if not steady or mean is None:
        return mean
    known = sorted(
        ((count(each) or 0) / each.interval_seconds, each.interval_seconds)
        for each in reports
        if each.interval_seconds
    )
    half, passed = sum(seconds for _, seconds in known) / 2, 0.0
    for rate, seconds in known:
        passed += seconds
        if passed >= half:
            return max(mean, rate)
    return mean
