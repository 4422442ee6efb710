"""How a replica's memory grows, and when it will be at its limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from paceline.diagnosing.cases import Case
from paceline.diagnosing.progress import silences
from paceline.model import trends
from paceline.model.measures.samples import Sample, StepReport
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.trends import Slope

#: Points of a replica's history that its growth is computed from: enough for an interval, cheap for hundreds
#: of replicas of an hour.
_POINTS = 40
#: Growth that was watched for less than that is how programs begin.
LEAST_SECONDS = 10.0
#: What was watched says nothing of more than so many times as long.
_REACH = 10.0
#: Of the growth in the first half, that in the second: where it is less, memory comes to rest.
_STEADY = 0.6
#: A rise by less of its limit than that is noise.
_LEAST_RISE = 0.03
#: Replicas whose first samples are so near began together.
_TOGETHER_SECONDS = 5.0
#: An import of TensorFlow and a restore take so long, or less; and with a large graph on a slow machine, of
#: which no step is seen that would say when it ended (own reasoning; TensorFlow's import takes 5 to 15 s).
START_SECONDS, UNSEEN_START_SECONDS = 30.0, 120.0


class Growth(NamedTuple):
    """Memory that grows steadily.

    Attributes:
        bytes_per_second: how fast, with the interval in which that lies.
        left_seconds: until the limit at that growth; and at the fastest and the slowest of the interval.
        watched_seconds: how long it was measured.
        points: from how many measurements.
    """

    bytes_per_second: Slope
    left_seconds: float
    soonest_seconds: float
    latest_seconds: float
    watched_seconds: float
    points: int


def growth(samples: Sequence[Sample], limit_bytes: int, *, since: float) -> Growth | None:
    """Return how the memory of one attempt grows; None: not steadily, too little, or not known well enough.

    Args:
        samples: of the attempt.
        limit_bytes: where it ends.
        since: when training began (Unix seconds): programs grow before, and end.
    """
    measured = [
        (each.at, float(each.memory_bytes))
        for each in samples
        if each.memory_bytes is not None and each.at >= since
    ]
    if not measured or measured[-1][0] - measured[0][0] < LEAST_SECONDS:
        return None
    points = trends.thinned(measured, _POINTS)
    if points[-1][1] - points[0][1] < _LEAST_RISE * limit_bytes:
        return None
    whole, late = trends.trend(points), trends.slope(points[len(points) // 2 :])
    early = trends.slope(points[: len(points) // 2])
    if whole is None or early is None or late is None or whole.low <= 0 or late < _STEADY * early:
        return None
    watched, left = measured[-1][0] - measured[0][0], max(0.0, limit_bytes - measured[-1][1])
    speed = Slope(whole.slope, min(whole.low, late), max(whole.high, late))
    if speed.low <= 0:
        return None
    found = Growth(
        bytes_per_second=speed,
        left_seconds=left / speed.slope,
        soonest_seconds=left / speed.high,
        latest_seconds=left / speed.low,
        watched_seconds=watched,
        points=len(measured),
    )
    return found if found.left_seconds <= _REACH * watched else None


def training_since(case: Case, replica: ReplicaSnapshot) -> float:
    """Return when a replica had begun to train (Unix seconds): before, it imports TensorFlow, builds its
    graph and makes its variables, and grows.

    A trainer begins with its first step, others with that of any trainer. Without a report of a step it
    begins some time after the job, or after its first sample if it has come back; that does not begin with
    the others.
    """
    own, begun = case.histories.get(replica.replica, ()), case.recording.run.started_at
    started = own[0].at if own else 0.0
    known = min((each[0].at for each in case.histories.values() if each), default=started)
    if replica.row.attempt == 1 and begun is not None and started - known < _TOGETHER_SECONDS:
        started = begun  # A look does not have its first samples any more.
    if replica.replica.role.trains:
        first = _first_step(case.reports.get(replica.replica, ()))
        return _unseen_since(case, started) if first is None else first
    steps = [at for own in case.reports.values() if (at := _first_step(own)) is not None]
    if not steps:
        return _unseen_since(case, started)
    return max(min(steps), started + START_SECONDS) if replica.row.attempt > 1 else min(steps)


def _first_step(reports: Sequence[StepReport]) -> float | None:
    return next((each.at for each in reports if each.steps is None or each.steps > 0), None)


def _unseen_since(case: Case, started: float) -> float:
    """Return when training has begun, of which no step is seen: never, where one would be."""
    return math.inf if silences.would_be_seen(case) else started + UNSEEN_START_SECONDS
