"""How a replica's memory grows, and when it will reach its limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from paceline.diagnosing.cases import Case
from paceline.diagnosing.progress import silences
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.model import trends
from paceline.model.measures.samples import Sample, StepReport
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.trends import Slope

#: Points of a replica's history that its growth is computed from: enough for an interval, cheap for hundreds
#: of replicas of an hour.
_POINTS = 40
LEAST_SECONDS = Threshold(
    "growths.least-seconds", 10.0, Unit.SECONDS,
    means="Growth that was watched for a shorter time than this is how programs begin.",
)  # fmt: skip
_REACH = Threshold(
    "growths.reach", 10.0, Unit.TIMES,
    means="Growth that was watched for some time says nothing of more than this many times that time.",
)  # fmt: skip
_STEADY = Threshold(
    "growths.steady", 0.6, Unit.TIMES,
    means="Memory comes to rest if it grows less than this many times as fast in the second half as in the "
    "first half of the time.",
)  # fmt: skip
_LEAST_RISE = Threshold(
    "growths.least-rise", 0.03, Unit.SHARE,
    means="A rise of the memory by a smaller share of its limit than this is noise.",
)  # fmt: skip
_TOGETHER_SECONDS = Threshold(
    "growths.together-seconds", 5.0, Unit.SECONDS,
    means="Replicas whose first samples are less than this apart began together.",
)  # fmt: skip
START_SECONDS = Threshold(
    "growths.start-seconds", 30.0, Unit.SECONDS,
    means="An import of TensorFlow, which takes 5 to 15 s, and a restore take this long or less. A replica "
    "that was started again is taken to train no earlier.",
)  # fmt: skip
UNSEEN_START_SECONDS = Threshold(
    "growths.unseen-start-seconds", 120.0, Unit.SECONDS,
    means="An import of TensorFlow, which takes 5 to 15 s, and a restore take this long or less with a large "
    "graph on a slow machine. A replica is taken to train from then on if no step is seen that would say "
    "when its start ended.",
)  # fmt: skip


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


def growth(case: Case, samples: Sequence[Sample], limit_bytes: int, *, since: float) -> Growth | None:
    """Return how the memory of one attempt grows; None: not steadily, too little, or not known well enough.

    Args:
        case: the measurements.
        samples: the samples of the attempt.
        limit_bytes: the memory limit.
        since: when training began (Unix seconds): memory also grows while a program starts, and then stops.
    """
    measured = [
        (each.at, float(each.memory_bytes))
        for each in samples
        if each.memory_bytes is not None and each.at >= since
    ]
    if not measured or measured[-1][0] - measured[0][0] < case.value(LEAST_SECONDS):
        return None
    points = trends.thinned(measured, _POINTS)
    if points[-1][1] - points[0][1] < case.value(_LEAST_RISE) * limit_bytes:
        return None
    whole, late = trends.trend(points), trends.slope(points[len(points) // 2 :])
    early = trends.slope(points[: len(points) // 2])
    if whole is None or early is None or late is None or whole.low <= 0:
        return None
    if late < case.value(_STEADY) * early:
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
    return found if found.left_seconds <= case.value(_REACH) * watched else None


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
    if replica.row.attempt == 1 and begun is not None and started - known < case.value(_TOGETHER_SECONDS):
        started = begun  # A recording of only the newest measurements does not have the first samples.
    if replica.replica.role.trains:
        first = _first_step(case.reports.get(replica.replica, ()))
        return _unseen_since(case, started) if first is None else first
    steps = [at for own in case.reports.values() if (at := _first_step(own)) is not None]
    if not steps:
        return _unseen_since(case, started)
    return max(min(steps), started + case.value(START_SECONDS)) if replica.row.attempt > 1 else min(steps)


def _first_step(reports: Sequence[StepReport]) -> float | None:
    return next((each.at for each in reports if each.steps is None or each.steps > 0), None)


def _unseen_since(case: Case, started: float) -> float:
    """Return when training began if no step was seen; infinity if a step would have been seen."""
    return math.inf if silences.would_be_seen(case) else started + case.value(UNSEEN_START_SECONDS)
