"""Trainers that run and make no steps: for how long, compared with their usual time between reports."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from paceline.diagnosing import sayings
from paceline.diagnosing.cases import Case
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.model.jobs.runs import SEEN
from paceline.model.jobs.statuses import ReplicaPhase
from paceline.model.measures import rates, standings
from paceline.model.measures.samples import Sample, StepReport
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.measures.standings import StandingActivity
from paceline.model.roles import ReplicaId

#: The first word of the instrumentation's remark that it has seen a training library. Its other remarks are
#: about steps, or about what it could not examine.
HELLOS = ("TensorFlow ", "PyTorch ")
#: How an agent, or the instrumentation itself, begins a remark about why a trainer's steps are not seen.
UNSEEN = "its steps are not seen"
RECENT_SECONDS = Threshold(
    "silences.recent-seconds", 8.0, Unit.SECONDS,
    means="This many last seconds of a replica say what it does now.",
)  # fmt: skip
STARTED_SECONDS = Threshold(
    "silences.started-seconds", 90.0, Unit.SECONDS,
    means="Where no step is seen, replicas that have run for this long do not start any more. They take less "
    "time to import TensorFlow, to build a graph and to fill variables.",
)  # fmt: skip


class Silence(NamedTuple):
    """A trainer that has made steps, and since when it makes none.

    Attributes:
        replica: the trainer.
        since: the time of its last report of a step (Unix seconds).
        seconds: the time from then to its last sample, in which it ran without making a step.
        usual: the median of the seconds between its reports.
        longest: the longest time between its reports.
        reports: the number of its reports of steps.
    """

    replica: ReplicaSnapshot
    since: float
    seconds: float
    usual: float
    longest: float
    reports: int


def silences(case: Case) -> list[Silence]:
    """Return for each running trainer how long ago it made the last step of its newest attempt."""
    return [found for each in case.trainers if (found := _silence(case, each)) is not None]


def _silence(case: Case, replica: ReplicaSnapshot) -> Silence | None:
    if replica.row.phase is not ReplicaPhase.RUNNING:
        return None
    reports = [
        report for report in case.reports.get(replica.replica, ()) if report.steps is None or report.steps > 0
    ]
    samples = case.histories.get(replica.replica, ())
    if not reports or not samples:
        return None
    gaps = [later.at - sooner.at for sooner, later in itertools.pairwise(reports)]
    gaps.append(reports[0].interval_seconds or 0.0)
    return Silence(
        replica=replica,
        since=reports[-1].at,
        seconds=samples[-1].at - reports[-1].at,
        usual=statistics.median(gaps),
        longest=max(gaps),
        reports=len(reports),
    )


def recent(case: Case, samples: Sequence[Sample]) -> list[Sample]:
    """Return the last ones of a replica's samples."""
    seconds = case.value(RECENT_SECONDS)
    return [each for each in samples if each.at > samples[-1].at - seconds]


def cores(samples: Iterable[Sample]) -> float | None:
    """Return the mean of the cores used; None: not measured."""
    return rates.time_mean(samples, lambda each: each.cpu_cores)


def is_stopped(case: Case, samples: Sequence[Sample]) -> bool:
    """Return whether a process does nothing at all: TensorFlow wakes now and then even while it waits."""
    last = recent(case, samples)
    switched = [count for each in last if (count := rates.switches(each)) is not None]
    return bool(switched) and len(last) >= 3 and max(switched) == 0


def steps_made(reports: Iterable[StepReport]) -> bool:
    """Return whether any of some reports is about a step."""
    return any(each.steps is None or each.steps > 0 for each in reports)


def has_begun(case: Case) -> bool:
    """Return whether the job is past its start: a step was seen, or all replicas have run for long enough.

    If steps would be seen, only a step counts: importing, building a graph and waiting may take any time.
    """
    if steps_made(case.recording.steps):
        return True
    if would_be_seen(case):
        return False
    known = [case.histories.get(each.replica, ()) for each in (*case.servers, *case.trainers)]
    seconds = case.value(STARTED_SECONDS)
    return bool(known) and all(own and own[-1].at - own[0].at >= seconds for own in known)


def would_be_seen(case: Case) -> bool:
    """Return whether the first step of the job would be seen, because a trainer is instrumented."""
    said = sayings.of(case, SEEN)
    unseen = {each.replica for each in said if each.message.startswith(UNSEEN)}
    return any(
        each.replica is not None
        and each.replica.role.trains
        and each.replica not in unseen
        and each.message.startswith(HELLOS)
        for each in said
    )


def ceased(case: Case, trainers: Iterable[Silence]) -> bool:
    """Return whether a trainer has said after its last step that its steps are not seen any more."""
    last = {trainer.replica.replica: trainer.since for trainer in trainers}
    return any(
        each.message.startswith(UNSEEN) and each.replica in last and each.at >= last[each.replica]
        for each in sayings.of(case, SEEN)
    )


def trains(case: Case) -> bool:
    """Return whether the job is past its start, and not all of its trainers stand still and wait."""
    if not has_begun(case):
        return False
    waiting = {
        each.replica for each in standings.now(case.recording) if each.doing is not StandingActivity.COMPUTING
    }
    return not waiting or any(each.replica not in waiting for each in case.trainers)


def stopped(case: Case) -> list[ReplicaId]:
    """Return the running replicas whose processes do nothing at all."""
    return [
        each.replica
        for each in case.snapshot.replicas
        if each.row.phase is ReplicaPhase.RUNNING and is_stopped(case, case.histories.get(each.replica, ()))
    ]
