"""What trainers do while no step ends, as they report it themselves (``docs/agent-protocol.md``)."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

from paceline.model.jobs.runs import STANDING, JobEvent
from paceline.model.jobs.statuses import ReplicaPhase
from paceline.model.measures.recordings import Recording
from paceline.model.roles import ReplicaId

_MOST_CHARACTERS = 200
#: An event has the time at which the last step of the trainer was seen; the report of this step may come this
#: much later.
_LATE_SECONDS = 3.0


class StandingActivity(enum.StrEnum):
    """What a trainer does while it makes no step."""

    INPUT = "input"
    STEP = "step"
    BETWEEN = "between"
    COMPUTING = "computing"


class Standing(NamedTuple):
    """A trainer that makes no step: what it does, since when (Unix seconds), and where in its script."""

    replica: ReplicaId
    doing: StandingActivity
    since: float
    where: str


def text(doing: str, where: str) -> str:
    """Return the text of an event for a standing trainer, as `now` reads it.

    Raises:
        ValueError: the activity is unknown, or the place is not a single line of text.
    """
    if not where.isprintable():
        raise ValueError("a place in a script is a line of text")
    return f"{StandingActivity(doing)}: {where[:_MOST_CHARACTERS]}"


def now(recording: Recording) -> list[Standing]:
    """Return the trainers that report that they make no step at the moment of a recording."""
    attempts = {
        row.replica: row.attempt
        for row in recording.replicas
        if row.replica.role.trains and row.phase is ReplicaPhase.RUNNING
    }
    latest = {
        event.replica: event
        for event in recording.events
        if event.kind == STANDING
        and event.replica is not None
        and attempts.get(event.replica) == event.attempt
    }
    moved: dict[ReplicaId, float] = {}
    for report in recording.steps if latest else ():
        if report.steps is None or report.steps > 0:
            moved[report.replica] = max(report.at, moved.get(report.replica, 0.0))
    return list(_read(event for event in latest.values() if not _is_over(event, moved)))


def _is_over(event: JobEvent, moved: dict[ReplicaId, float]) -> bool:
    return event.replica is None or moved.get(event.replica, 0.0) > event.at + _LATE_SECONDS


def _read(events: Iterable[JobEvent]) -> Iterable[Standing]:
    for event in events:
        doing, _, where = event.message.partition(": ")
        if event.replica is not None and doing in set(StandingActivity):
            yield Standing(event.replica, StandingActivity(doing), event.at, where)
