"""What agents say of replicas beside what they measure: events of a kind, and what rules quote of them."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.diagnosing.cases import Case
from paceline.model.explanations.causes import Evidence
from paceline.model.jobs.runs import JobEvent

_QUOTED = 5


def of(case: Case, kind: str) -> list[JobEvent]:
    """Return what was said of a kind."""
    return [event for event in case.recording.events if event.kind == kind and event.replica is not None]


def names(said: Sequence[JobEvent]) -> list[str]:
    """Return the replicas of which it was said, each once."""
    return list(dict.fromkeys(str(each.replica) for each in said))


def evidence(said: Sequence[JobEvent]) -> tuple[Evidence, ...]:
    """Return the first of it."""
    return tuple(Evidence(text=f"{each.replica}: {each.message}", at=each.at) for each in said[:_QUOTED])
