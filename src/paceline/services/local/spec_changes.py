"""Continues jobs of this machine from their last checkpoint, unchanged or with another job file.

The caller leaves a change in the store. The job's supervisor makes the change when the job has ended, so it
is made once, whichever process dies in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paceline.control import events
from paceline.control import machines as control
from paceline.engines.local import folders, layouts, machines
from paceline.errors import EngineError, InvalidInput, NotFound
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import CHANGED, NOT_CHANGED, JobEvent, Run
from paceline.model.jobs.statuses import JobPhase
from paceline.services import change_locks, successors, variable_plans
from paceline.services.local.run_registry import RunRegistry


def change(registry: RunRegistry, run: Run, source: str) -> None:
    """Continue a job with another job file, from its last checkpoint.

    The job keeps its name, its command and its working directory; replicas, cores, hosts and training may
    differ. A running job is asked to end; then its supervisor resumes it, even if the caller is gone.

    Args:
        registry: the runs of the home.
        run: the job; if it has ended, it must be resumable.
        source: the job file.

    Raises:
        Conflict: the job is being changed already.
        InvalidInput: the job file is invalid, or runs something else.
        EngineError: the job has ended, and the new one does not fit this machine.
    """
    name, spec = run.name, changed_spec(run, source)
    with change_locks.held(folders.RunFolder.of(run), "changed"):
        registry.store.request_change(name, source, at=registry.clock())
    if run.phase.is_final:
        try:
            bring_back(registry, run, spec, source=source)
        except EngineError:
            registry.store.drop_change(name)
            raise
    if registry.is_lost(registry.get(name)):
        registry.supervise(run)


def carry_on(registry: RunRegistry, name: str) -> bool:
    """Resume an ended run with the job file requested for it; if that is not possible, resume it unchanged.

    Returns:
        Whether the run is resumed; it is not if no change was requested, or if it has succeeded meanwhile.

    Raises:
        EngineError: the job does not fit this machine, neither changed nor unchanged.
        StoreError: the store cannot be written.
    """
    change, run = registry.store.waiting_change(name), registry.get(name)
    if change is None:
        return False
    if run.phase is JobPhase.SUCCEEDED:
        registry.store.drop_change(name)
        late = JobEvent(
            at=registry.clock(), kind=NOT_CHANGED, message="it had succeeded before it could be changed"
        )
        registry.store.append_events(name, [late])
        return False
    told = "it goes on with another job file, from its last checkpoint"
    made = JobEvent(at=registry.clock(), kind=CHANGED, message=told)
    try:
        bring_back(registry, run, changed_spec(run, change.source), source=change.source, told=[made])
    except (InvalidInput, NotFound, EngineError) as error:
        _go_on_unchanged(registry, run, error.message)
    return True


def _go_on_unchanged(registry: RunRegistry, run: Run, reason: str) -> None:
    refused = JobEvent(at=registry.clock(), kind=NOT_CHANGED, message=reason)
    try:
        bring_back(registry, run, run.spec, drops_change=True, told=[refused])
    except EngineError:
        registry.store.drop_change(run.name)
        registry.store.append_events(run.name, [refused])
        raise


def bring_back(
    registry: RunRegistry,
    run: Run,
    spec: JobSpec,
    *,
    source: str | None = None,
    drops_change: bool = False,
    told: Sequence[JobEvent] = (),
) -> None:
    """Give an ended job a place again, and the state from which a supervisor continues; all of it or nothing.

    Args:
        registry: the runs of the home.
        run: the job.
        spec: the spec with which it continues.
        source: the job file, if it is another one.
        drops_change: whether to discard the requested change.
        told: the events to record.

    Raises:
        EngineError: the job does not fit this machine.
        StoreError: the store cannot be written.
    """
    folder = folders.RunFolder.of(run)
    with registry.choosing():
        layouts.choose(spec, machines.read(), folder, registry.active_folders(run.name)).write(folder)
        late = [each.id for each in registry.store.requests(run.name)]  # They do not concern the resumed run.
        asked = events.ResumeRequested(spec=None if source is None else spec)
        state, _ = control.advance(registry.store.load_state(run.name), asked)
        if source is not None:
            folder.write_source(source)
        registry.store.save_state(
            run.name, state,
            at=registry.clock(), events=told, source=source, drops_change=drops_change, answered=late,
        )  # fmt: skip


def changed_spec(run: Run, source: str) -> JobSpec:
    """Return the spec with which a local run continues, including the variable plan that its file names.

    Raises:
        InvalidInput: the file is invalid, or runs something else.
        NotFound: the variable plan does not exist.
    """
    return variable_plans.settled(successors.successor(run, source), base=Path(run.spec.working_dir or "."))
