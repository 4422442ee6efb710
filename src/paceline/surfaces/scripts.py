"""What the instrumentation observed and changed in training scripts that were not written for Paceline."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from paceline.errors import PacelineError
from paceline.model.jobs.job_specs import Instrumentation, JobSpec
from paceline.model.jobs.runs import CURED, OF_SCRIPTS, SEEN, STEPS_SEEN, JobEvent, ReplicaRow, Run
from paceline.model.measures import script_facts
from paceline.model.roles import ReplicaId
from paceline.model.variables import cures
from paceline.model.words import listed
from paceline.services.life_cycles import JobReader


def seen(spec: JobSpec, replicas: Sequence[ReplicaRow], events: Sequence[JobEvent]) -> list[tuple[str, str]]:
    """Return what was observed in the script of each replica's last attempt, as names of replicas and a text.

    Replicas with the same text share an entry. The list is empty if nothing was observed: the job's script
    may report by itself.
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


def changed(spec: JobSpec, happened: Iterable[JobEvent]) -> list[tuple[str, str]]:
    """Return the outcome of each cure that a job file asks for, and the keys that the script does not obey.

    The list is empty for a job whose steps the instrumentation does not see.
    """
    known = list(happened)
    if not any(is_of_steps(event) for event in known):
        return []
    texts: dict[tuple[str, str], list[str]] = {}
    outcomes = []
    for event in known:
        outcome = cures.parse(event.message) if event.kind == CURED else None
        if outcome is not None:
            outcomes.append(outcome)
            what = f"applied to {outcome.count}" if outcome.is_applied else "refused"
            replicas = texts.setdefault((outcome.cure, f"{what}: {outcome.detail}"), [])
            if event.replica is not None and str(event.replica) not in replicas:
                replicas.append(str(event.replica))
    found = [(cure, f"{text} ({listed(names)})") for (cure, text), names in texts.items()]
    for cure in cures.silent(spec.training, outcomes):
        found.append((cure.name, "nothing was found in the script that it could change"))
    # For some keys the instrumentation has already reported why no cure can apply them.
    explained = {each.detail.partition(":")[0] for each in outcomes if not each.is_applied}
    for key in cures.unmet(spec.training):
        if key in explained:
            continue
        found.append((key, "not obeyed: only a script with paceline.training does that"))
    return found


def is_of_steps(event: JobEvent) -> bool:
    """Return whether an event says that the instrumentation sees the steps of a script."""
    return event.kind == SEEN and event.message.startswith(STEPS_SEEN)


def events(jobs: JobReader, run: Run) -> list[JobEvent]:
    """Return the events of a job, including those about its scripts.

    If no store of the operator is configured on a cluster, only the agents have the events about scripts.
    They are then read from the agents.
    """
    found = [event for _, event in jobs.events(run.name)]
    if not run.phase.is_final and len(others(found)) == len(found):
        with contextlib.suppress(PacelineError):  # If the agents do not answer, the other events are shown.
            recording = jobs.recording(run.name, since=jobs.clock())
            found += [event for event in recording.events if event.kind in OF_SCRIPTS]
    return found


def others(events: Iterable[JobEvent]) -> list[JobEvent]:
    """Return the events that are not about scripts."""
    return [event for event in events if event.kind not in OF_SCRIPTS]
