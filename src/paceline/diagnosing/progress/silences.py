"""Trainers that live and make no steps: for how long, against how long their steps usually take."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from paceline.diagnosing import sayings
from paceline.diagnosing.cases import Case
from paceline.model.jobs.runs import SEEN
from paceline.model.jobs.statuses import ReplicaPhase
from paceline.model.measures import rates, standings
from paceline.model.measures.samples import Sample, StepReport
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.measures.standings import StandingActivity
from paceline.model.roles import ReplicaId

#: The first word of what the instrumentation says when it has seen a library that trains. What else it says
#: is of steps, or of what it could not look into.
HELLOS = ("TensorFlow ", "PyTorch ")
#: So an agent begins that says why nothing is seen of a trainer.
UNSEEN = "its steps are not seen"
#: The last seconds that say what a replica does now.
RECENT_SECONDS = 8.0
#: Where no step is seen, replicas that have run for so long do not start any more: to import TensorFlow, to
#: build a graph and to fill variables takes less.
STARTED_SECONDS = 90.0


class Silence(NamedTuple):
    """A trainer that has made steps, and since when it makes none.

    Attributes:
        since: the moment of its last report of a step (Unix seconds).
        seconds: until it was measured last: so it lived for so long without a step.
        usual: the median of seconds between its reports; and the longest.
        longest: see ``usual``.
        reports: how many there are.
    """

    replica: ReplicaSnapshot
    since: float
    seconds: float
    usual: float
    longest: float
    reports: int


def silences(case: Case) -> list[Silence]:
    """Return how long ago each trainer that lives has made its last step, in its newest attempt."""
    return [found for each in case.trainers if (found := _silence(case, each)) is not None]


def _silence(case: Case, replica: ReplicaSnapshot) -> Silence | None:
    if replica.row.phase is not ReplicaPhase.RUNNING:
        return None
    made = [each for each in case.reports.get(replica.replica, ()) if each.steps is None or each.steps > 0]
    samples = case.histories.get(replica.replica, ())
    if not made or not samples:
        return None
    gaps = [later.at - sooner.at for sooner, later in itertools.pairwise(made)]
    gaps.append(made[0].interval_seconds or 0.0)
    return Silence(
        replica=replica,
        since=made[-1].at,
        seconds=samples[-1].at - made[-1].at,
        usual=statistics.median(gaps),
        longest=max(gaps),
        reports=len(made),
    )


def recent(samples: Sequence[Sample]) -> list[Sample]:
    """Return the last samples of a replica."""
    return [each for each in samples if each.at > samples[-1].at - RECENT_SECONDS]


def cores(samples: Iterable[Sample]) -> float | None:
    """Return the mean of the cores used; None: not measured."""
    return rates.time_mean(samples, lambda each: each.cpu_cores)


def is_stopped(samples: Sequence[Sample]) -> bool:
    """Whether a process does nothing at all: TensorFlow that merely waits still wakes now and then."""
    last = recent(samples)
    switched = [count for each in last if (count := rates.switches(each)) is not None]
    return bool(switched) and len(last) >= 3 and max(switched) == 0


def steps_made(reports: Iterable[StepReport]) -> bool:
    """Whether any of some reports tells of a step."""
    return any(each.steps is None or each.steps > 0 for each in reports)


def has_begun(case: Case) -> bool:
    """Whether what replicas do is more than their start: a step was seen, or all have run for long enough.

    Where steps would be seen nothing else counts: to import, to build a graph and to wait may take any time.
    """
    if steps_made(case.recording.steps):
        return True
    if would_be_seen(case):
        return False
    known = [case.histories.get(each.replica, ()) for each in (*case.servers, *case.trainers)]
    return bool(known) and all(own and own[-1].at - own[0].at >= STARTED_SECONDS for own in known)


def would_be_seen(case: Case) -> bool:
    """Whether the first step of the job would be seen, because a trainer is looked into."""
    said = sayings.of(case, SEEN)
    unseen = {each.replica for each in said if each.message.startswith(UNSEEN)}
    return any(
        each.replica is not None
        and each.replica.role.trains
        and each.replica not in unseen
        and each.message.startswith(HELLOS)
        for each in said
    )


def trains(case: Case) -> bool:
    """Whether the job is beyond its start, and not all of its trainers stand and wait."""
    if not has_begun(case):
        return False
    waiting = {
        each.replica for each in standings.now(case.recording) if each.doing is not StandingActivity.COMPUTING
    }
    return not waiting or any(each.replica not in waiting for each in case.trainers)


def stopped(case: Case) -> list[ReplicaId]:
    """Return the replicas that should run and whose processes do nothing at all."""
    return [
        each.replica
        for each in case.snapshot.replicas
        if each.row.phase is ReplicaPhase.RUNNING and is_stopped(case.histories.get(each.replica, ()))
    ]
