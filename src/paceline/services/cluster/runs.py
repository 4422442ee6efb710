"""Runs of a store that are jobs of a cluster: names them, updates them from their resources, finds them.

Two namespaces may have jobs of the same name, and a name may be used again after a job or its namespace was
deleted. So the name of a run consists of the namespace's name and uid, and the job's name and its resource's
uid. A job's name stands for its newest run. A namespace does not see the runs of an earlier namespace of the
same name.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from paceline.control import states
from paceline.engines.kubernetes import times
from paceline.engines.kubernetes.clusters import Object
from paceline.errors import Conflict, NotFound
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.run_names import cluster_job
from paceline.model.jobs.runs import KUBERNETES, JobEvent, Run, RunSummary
from paceline.model.jobs.statuses import JobPhase
from paceline.services.cluster import records
from paceline.services.cluster.annotations import CHANGE
from paceline.stores import Store

DELETED = "its TrainingJob was deleted"


def scope_of(namespace: Object) -> str:
    """Return the prefix of the names that a namespace's runs have in a store."""
    metadata = namespace["metadata"]
    return f"{metadata['name']}.{metadata['uid']}/"


def run_name(resource: Object, scope: str) -> str:
    """Return the name that a job has in a store."""
    metadata = resource["metadata"]
    return f"{scope}{metadata['name']}/{metadata['uid']}"


def folder(home: Path, run: str) -> Path:
    """Return where the files of a run are kept."""
    return home / "clusters" / run


def progress(resource: Object) -> dict[str, Any]:
    """Return the progress of a job, from its resource, as fields of `Run` and of `RunSummary`.

    A phase that only a newer Paceline knows is shown as running: to presume that a job lives does it no harm.
    """
    status = resource.get("status") or {}
    phase, trouble = status.get("phase", JobPhase.PENDING), records.trouble(status)
    if phase not in set(JobPhase):
        phase, trouble = JobPhase.RUNNING, trouble or f"its status says {phase!r}, which is not known here"
    return {
        "phase": JobPhase(phase),
        "message": trouble or status.get("message", ""),
        "submitted_at": times.seconds(resource["metadata"]["creationTimestamp"]),
        "started_at": times.seconds_if(status.get("startedAt")),
        "finished_at": times.seconds_if(status.get("finishedAt")),
    }


def find(store: Store, scope: str, name: str, uid: str = "") -> Run:
    """Return the newest run of a job, or the run of the resource with the given uid.

    Args:
        store: the store.
        scope: the scope of the namespace.
        name: the job.
        uid: the uid of its resource; empty: any.

    Raises:
        NotFound: the store has no such run.
        StoreError: the store cannot be read.
    """
    found = [store.get_run(each) for each in store.run_names_like(f"{scope}{name}/{uid}")]
    if not found:
        raise NotFound(
            f"the store has nothing of job {name!r} in {scope.partition('.')[0]}",
            "the operator that looks after it has to keep it there: paceline operator --store URL",
        )
    return max(found, key=lambda run: run.submitted_at)


def keep(store: Store, name: str, resource: Object, spec: JobSpec, home: Path, *, now: float) -> None:
    """Store the current state of a job, and the events since it was last stored.

    Args:
        store: the store.
        name: the name of its run in the store.
        resource: the job.
        spec: the spec of the job.
        home: where files of runs are kept.
        now: Unix seconds.

    Raises:
        UnreadableStatus: the status of the job cannot be read.
        StoreError: the store cannot be written.
    """
    status = resource.get("status") or {}
    record = records.read(status, spec)
    state = states.initial(spec) if record is None else record.state
    try:
        before = store.load_state(name)
    except NotFound:
        before = states.initial(spec)
        run = Run(
            name=name, spec=spec, source="", engine=KUBERNETES, directory=str(folder(home, name)),
            submitted_at=times.seconds(resource["metadata"]["creationTimestamp"]),
        )  # fmt: skip
        try:
            store.create_run(run, before)
        except Conflict:  # Another process was quicker.
            before = store.load_state(name)
    _settle(store, name, resource, now)
    if state == before:
        return
    reached = progress(resource)
    started, finished = reached["started_at"], reached["finished_at"]
    told = happened(before, state, at=finished or now)
    store.save_state(name, state, at=finished or started or now, events=told)
    store.update_run(name, started_at=started)


def _settle(store: Store, name: str, resource: Object, now: float) -> None:
    """Note that a job has been continued with a changed spec, once the operator's status says so."""
    asked = (resource["metadata"].get("annotations") or {}).get(CHANGE)
    if asked and asked == (resource.get("status") or {}).get("changed"):
        waiting = store.waiting_change(name)  # This runs every second: write only if a change waits.
        with contextlib.suppress(ValueError):  # Paceline did not write this value, so nothing is noted.
            if waiting is not None and waiting.asked_at <= float(asked):
                store.settle_change(name, at=now)


def happened(before: states.JobState, after: states.JobState, *, at: float) -> list[JobEvent]:
    """Return the events of a change of state: replicas that ended, and a new phase of the job."""
    job_events = []
    for replica in after.replicas:
        old = before.replica(replica.replica)
        if replica.exit is not None and (
            old is None or (old.exit, old.attempt) != (replica.exit, replica.attempt)
        ):
            event = JobEvent(
                at=at, kind="replica-exited", message=str(replica.exit), replica=replica.replica,
                attempt=replica.attempt,
            )  # fmt: skip
            job_events.append(event)
    if after.phase is not before.phase:
        job_events.append(JobEvent(at=at, kind=str(after.phase), message=after.message))
    return job_events


def end_all_but(
    store: Store, present: Collection[str], *, namespaces: Collection[str] | None, now: float
) -> None:
    """Mark the runs whose resources are gone as ended.

    Args:
        store: the store.
        present: the names of the runs that have a resource.
        namespaces: the namespaces that were read, to which this is limited; None: all.
        now: Unix seconds.
    """
    for run in _of(store, namespaces):
        if not run.phase.is_final and run.name not in present:
            store.update_run(run.name, phase=JobPhase.STOPPED, message=DELETED, finished_at=now)
            event = JobEvent(at=now, kind=str(JobPhase.STOPPED), message=DELETED)
            store.append_events(run.name, [event])


def forget_old(
    store: Store, present: Collection[str], *, namespaces: Collection[str] | None, before: float
) -> None:
    """Remove the runs without a resource that ended before ``before`` (Unix seconds), with their files."""
    for run in _of(store, namespaces):
        if run.name not in present and run.finished_at is not None and run.finished_at < before:
            shutil.rmtree(run.directory, ignore_errors=True)
            store.delete_run(run.name)


def _of(store: Store, namespaces: Collection[str] | None) -> Iterable[RunSummary]:
    for run in store.list_runs(engine=KUBERNETES):
        if namespaces is None or cluster_job(run.name)[0] in namespaces:
            yield run
