"""What was seen in the scripts of a job that were not written for Paceline, and what was not, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paceline.model.jobs import Instrumentation, JobSpec
from paceline.model.roles import ReplicaId
from paceline.model.runs import SEEN, JobEvent, ReplicaRow
from paceline.model.words import listed


def seen(spec: JobSpec, replicas: Sequence[ReplicaRow], events: Iterable[JobEvent]) -> list[tuple[str, str]]:
    """Return what was seen in the script of each replica at its last attempt: names of replicas, and a text.

    Those are together that are alike. There is nothing where nothing was seen: a job may report by itself.
    """
    if spec.instrumentation is Instrumentation.OFF:
        return [("all", 'nothing: instrumentation is "off" in the job file')]
    said: dict[tuple[ReplicaId | None, int | None], dict[str, None]] = {}
    for event in events:
        if event.kind == SEEN:
            said.setdefault((event.replica, event.attempt), {})[event.message] = None
    if not said:
        return []
    alike: dict[str, list[str]] = {}
    for row in replicas:
        text = "; ".join({**said.get((row.replica, None), {}), **said.get((row.replica, row.attempt), {})})
        alike.setdefault(text or "nothing", []).append(str(row.replica))
    return [(listed(names), text) for text, names in alike.items()]


def others(events: Iterable[JobEvent]) -> list[JobEvent]:
    """Return the events that say something else."""
    return [event for event in events if event.kind != SEEN]
