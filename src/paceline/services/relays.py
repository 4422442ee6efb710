"""Jobs of this machine that go on from their last checkpoint, as they were or as another job file has them.

The caller leaves a change in the store. The job's supervisor makes it when the job has ended, so it is made
once, whichever process dies in between.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paceline import specs
from paceline.control import events
from paceline.control import machines as control
from paceline.engines.local import folders, layouts, machines
from paceline.errors import EngineError, InvalidInput, NotFound
from paceline.model.jobs import JobSpec
from paceline.model.runs import JobEvent, Run
from paceline.model.statuses import JobPhase
from paceline.services import change_locks, variable_plans

if TYPE_CHECKING:
    from paceline.services.jobs import Jobs

#: What is told of a change, and of one that was refused.
CHANGED, NOT_CHANGED = "changed", "not-changed"


def change(jobs: Jobs, name: str, source: str) -> None:
    """Let a job go on as another job file has it, from its last checkpoint.

    Its name, its command and where that starts stay; replicas, cores, hosts and training may differ. One that
    runs is asked to end; then its supervisor brings it back, even if the caller is gone.

    Args:
        jobs: where it is.
        name: the job.
        source: the job file.

    Raises:
        Conflict: it has succeeded, or is being changed already.
        InvalidInput: the job file is wrong, or runs something else.
        EngineError: it has ended, and does not fit this machine then.
    """
    run = jobs.get(name)
    if run.phase.is_final:
        jobs.check_resumable(run)
    spec = relayed(run, source)
    with change_locks.held(folders.RunFolder(Path(run.directory)), "changed"):
        jobs.store.ask_relay(name, source, at=jobs.clock())
    if run.phase.is_final:
        try:
            bring_back(jobs, run, spec, source=source)
        except EngineError:
            jobs.store.drop_relay(name)
            raise
    if jobs.is_lost(jobs.get(name)):
        jobs.supervise(run)


def carry_on(jobs: Jobs, name: str) -> bool:
    """Give an ended run the job file that it was asked to go on with; else it goes on as it was.

    Returns:
        Whether it goes on; it does not if nothing was asked, or if it has succeeded meanwhile.

    Raises:
        EngineError: it does not fit this machine, neither changed nor as it was.
        StoreError: the store cannot be written.
    """
    relay, run = jobs.store.waiting_relay(name), jobs.get(name)
    if relay is None:
        return False
    if run.phase is JobPhase.SUCCEEDED:
        jobs.store.drop_relay(name)
        late = JobEvent(
            at=jobs.clock(), kind=NOT_CHANGED, message="it had succeeded before it could be changed"
        )
        jobs.store.append_events(name, [late])
        return False
    told = "it goes on with another job file, from its last checkpoint"
    made = JobEvent(at=jobs.clock(), kind=CHANGED, message=told)
    try:
        bring_back(jobs, run, relayed(run, relay.source), source=relay.source, told=[made])
    except (InvalidInput, NotFound, EngineError) as error:
        _go_on_unchanged(jobs, run, error.message)
    return True


def _go_on_unchanged(jobs: Jobs, run: Run, reason: str) -> None:
    refused = JobEvent(at=jobs.clock(), kind=NOT_CHANGED, message=reason)
    try:
        bring_back(jobs, run, run.spec, drops_relay=True, told=[refused])
    except EngineError:
        jobs.store.drop_relay(run.name)
        jobs.store.append_events(run.name, [refused])
        raise


def bring_back(
    jobs: Jobs,
    run: Run,
    spec: JobSpec,
    *,
    source: str | None = None,
    drops_relay: bool = False,
    told: Sequence[JobEvent] = (),
) -> None:
    """Give an ended job a place again, and the state from which a supervisor goes on: all, or nothing.

    Args:
        jobs: where it is.
        run: the job.
        spec: as which it goes on.
        source: the job file, if it is another one.
        drops_relay: what it was asked to go on with is forgotten.
        told: what has happened.

    Raises:
        EngineError: it does not fit this machine.
        StoreError: the store cannot be written.
    """
    folder = folders.RunFolder(Path(run.directory))
    with jobs.choosing():
        layouts.choose(spec, machines.read(), folder, jobs.active_folders(run.name)).write(folder)
        jobs.store.take_requests(run.name)  # A request to stop that came too late is not for this life.
        asked = events.ResumeRequested(spec=None if source is None else spec)
        state, _ = control.advance(jobs.store.load_state(run.name), asked)
        if source is not None:
            (folder.path / "job.yaml").write_text(source)
        jobs.store.save_state(
            run.name, state, at=jobs.clock(), events=told, source=source, drops_relay=drops_relay
        )


def relayed(run: Run, source: str) -> JobSpec:
    """Return as what a run of this machine goes on, with the plan of variables that its file names.

    Raises:
        InvalidInput: the file is wrong, or runs something else.
        NotFound: there is no such plan.
    """
    return variable_plans.settled(successor(run, source), base=Path(run.spec.working_dir or "."))


def successor(run: Run, source: str) -> JobSpec:
    """Return as what a run goes on: as the file says, but with its own name, labels and folder.

    Raises:
        InvalidInput: the file is wrong, or runs something else.
    """
    asked = specs.parse_job(source).spec
    if not _runs_the_same(asked, run.spec):
        raise InvalidInput(
            f"the job file runs something other than {run.name}", "submit it as a job of its own"
        )
    return dataclasses.replace(asked, name=run.name, working_dir=run.spec.working_dir, labels=run.spec.labels)


def _runs_the_same(spec: JobSpec, other: JobSpec) -> bool:
    """Whether the replicas of two jobs run the same commands; one may have a role that the other has not."""
    commands = {each.role: each.command for each in spec.roles}
    return (spec.command, spec.code) == (other.command, other.code) and all(
        commands.get(each.role, each.command) == each.command for each in other.roles
    )
