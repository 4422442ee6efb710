"""What was seen in the scripts of a job that were not written for Paceline, and what was not, and why."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from paceline.errors import PacelineError
from paceline.model import script_facts
from paceline.model.jobs import Instrumentation, JobSpec
from paceline.model.roles import ReplicaId
from paceline.model.runs import FACT, SEEN, JobEvent, ReplicaRow, Run
from paceline.model.words import listed
from paceline.services.life_cycles import LifeCycle


def seen(spec: JobSpec, replicas: Sequence[ReplicaRow], events: Sequence[JobEvent]) -> list[tuple[str, str]]:
    """Return what was seen in the script of each replica at its last attempt: names of replicas, and a text.

    Those are together that are alike. There is nothing where nothing was seen: a job may report by itself.
    """
    if spec.instrumentation is Instrumentation.OFF:
        return [("all", 'nothing: instrumentation is "off" in the job file')]
    said: dict[tuple[ReplicaId | None, int | None], dict[str, None]] = {}
    for event in events:
        if event.kind == SEEN:
            said.setdefault((event.replica, event.attempt), {})[event.message] = None
    facts = script_facts.of_replicas(replicas, events)
    for row in replicas:
        texts = [script_facts.text(name, fact.value) for name, fact in facts.get(row.replica, {}).items()]
        if texts:
            said.setdefault((row.replica, row.attempt), {})[", ".join(texts)] = None
    if not said:
        return []
    alike: dict[str, list[str]] = {}
    for row in replicas:
        text = "; ".join({**said.get((row.replica, None), {}), **said.get((row.replica, row.attempt), {})})
        alike.setdefault(text or "nothing", []).append(str(row.replica))
    return [(listed(names), text) for text, names in alike.items()]


def events(jobs: LifeCycle, run: Run) -> list[JobEvent]:
    """Return what happened to a job, and what its agents say of its scripts where only they have that: on a
    cluster, when the operator's store is not named.
    """
    found = [event for _, event in jobs.events(run.name)]
    if not run.phase.is_final and len(others(found)) == len(found):
        with contextlib.suppress(PacelineError):  # They do not answer: then the rest is shown.
            recording = jobs.recording(run.name, since=jobs.clock())
            found += [event for event in recording.events if event.kind in (SEEN, FACT)]
    return found


def others(events: Iterable[JobEvent]) -> list[JobEvent]:
    """Return the events that say something else."""
    return [event for event in events if event.kind not in (SEEN, FACT)]
