"""How a replica's memory grows, and when it will reach its limit."""

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
        bytes_per_second: the speed of the growth, with the interval in which it lies.
        left_seconds: the time until the limit is reached at this speed.
        soonest_seconds: the same time at the fastest speed of the interval.
        latest_seconds: the same time at the slowest speed of the interval.
        watched_seconds: for how long the growth was measured.
        points: the number of measurements.
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
        samples: the samples of the attempt.
        limit_bytes: the memory limit.
        since: when training began (Unix seconds): memory also grows while a program starts, and then stops.
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
    """Return when a replica began to train (Unix seconds).

    Before that, its memory grows because it imports TensorFlow, builds its graph and makes its variables.

    A trainer begins with its first step, other replicas with the first step of any trainer. If no step was
    reported, training is assumed to begin some time after the job started, or after the first sample of a
    replica that was started again later than the others.
    """
    own, begun = case.histories.get(replica.replica, ()), case.recording.run.started_at
    started = own[0].at if own else 0.0
    known = min((each[0].at for each in case.histories.values() if each), default=started)
    if replica.row.attempt == 1 and begun is not None and started - known < _TOGETHER_SECONDS:
        started = begun  # A recording of only the newest measurements does not have the first samples.
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
    """Return when training began if no step was seen; infinity if a step would have been seen."""
    return math.inf if silences.would_be_seen(case) else started + UNSEEN_START_SECONDS
