"""Agents' remarks about replicas, besides measurements: events of a kind, and how rules quote them."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.diagnosing.cases import Case
from paceline.model.explanations.causes import Evidence
from paceline.model.jobs.runs import JobEvent

_QUOTED = 5


def of(case: Case, kind: str) -> list[JobEvent]:
    """Return the events of a kind that are about a replica."""
    return [event for event in case.recording.events if event.kind == kind and event.replica is not None]


def names(said: Sequence[JobEvent]) -> list[str]:
    """Return the names of the replicas that the events are about, each once."""
    return list(dict.fromkeys(str(each.replica) for each in said))


def evidence(said: Sequence[JobEvent]) -> tuple[Evidence, ...]:
    """Return the first few events as evidence."""
    return tuple(Evidence(text=f"{each.replica}: {each.message}", at=each.at) for each in said[:_QUOTED])
