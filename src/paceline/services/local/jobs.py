"""The life cycle of jobs on this machine: submit, list, wait, stop, resume, delete, prune."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from paceline.control import events, resizings, states
from paceline.control.resizings import Resize
from paceline.diagnosing.situations import Situation
from paceline.engines.local import codes, engine, folders, layouts, machines
from paceline.errors import Conflict, EngineError, PacelineError, StoreError
from paceline.model.jobs.adjustments import Adjustment, Knob
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.nodes import Node
from paceline.model.jobs.retentions import expires_at
from paceline.model.jobs.run_queries import RunPage, RunQuery
from paceline.model.jobs.runs import (
    ADJUST,
    ADJUSTED,
    IMPORTED,
    LOCAL,
    RESIZE,
    RESIZED,
    SCALE,
    STOP,
    JobEvent,
    ReplicaRow,
    Run,
    RunSummary,
    Submit,
)
from paceline.model.jobs.statuses import ACTIVE_PHASES, JobPhase
from paceline.scheduling.fits import Fit
from paceline.services import change_locks, logs, packed_folders, variable_plans
from paceline.services.life_cycles import LifeCycle, Stored
from paceline.services.local import (
    capacities,
    job_states,
    resizes,
    run_registry,
    spec_changes,
    state_dirs,
    supervisors,
)
from paceline.services.local.run_registry import RunRegistry
from paceline.services.local.trace_sites import FolderTraceSite
from paceline.stores import Store, encodings

if TYPE_CHECKING:
    from paceline.model.jobs.retentions import Ageing
    from paceline.model.measures.probes import Probe
    from paceline.model.measures.recordings import Recording
    from paceline.model.measures.snapshots import Snapshot

POLL_SECONDS = 0.2


@dataclasses.dataclass(frozen=True, slots=True)
class Jobs(LifeCycle):
    """What can be done with the jobs of one home."""

    POLL_SECONDS: ClassVar[float] = POLL_SECONDS
    home: state_dirs.Home
    store: Store
    clock: Callable[[], float] = time.time

    @property
    def registry(self) -> RunRegistry:
        """Return the runs of this home, with their folders and supervisors."""
        return RunRegistry(self.home, self.store, self.clock)

    def submit(
        self, spec: JobSpec, *, source: str, base: Path, name: str | None = None, submit: Submit | None = None
    ) -> Run:
        """Start a job and return at once; nothing is left behind when that fails.

        Args:
            spec: the job.
            source: its file's text, kept as it is.
            base: the folder that a relative working directory starts from.
            name: instead of the job's own; a number is added when a run of that name exists.
            submit: how this submit is known when it is made again: then the run that it made is returned.

        Raises:
            Conflict: something else was submitted with that key.
            InvalidInput: a plan of variables that the job names is wrong, or not for this job.
            NotFound: there is no such plan, or no such folder of code.
            EngineError: the job does not fit this machine, its code cannot be fetched, or its supervisor did
                not start.
            StoreError: the state folder or the store cannot be written.
        """
        spec = variable_plans.settled(spec, base=base)
        self.prune_expired()
        machine = machines.read()
        with self._fetched(spec, base) as fetched, self.registry.choosing():
            made = None if submit is None else self.store.submitted(submit)
            if made is not None:
                return self._submitted(made)
            run = self._record(spec, source, base, name or spec.name, machine, fetched, submit)
        folder = folders.RunFolder.of(run)
        try:
            self.registry.supervise(run)
        except EngineError:
            self.registry.forget(run.name, folder)
            raise
        return self.store.get_run(run.name)

    def _submitted(self, name: str) -> Run:
        """Return the run that a submit made before; the caller may have been killed before the run began."""
        run = self.store.get_run(name)
        if run.phase is JobPhase.PENDING and self.is_lost(run):
            self.registry.supervise(run)
        return run

    @contextlib.contextmanager
    def _fetched(self, spec: JobSpec, base: Path) -> Iterator[Path | None]:
        """Fetch the job's code into a folder of its own, of which the run takes what is in it."""
        if spec.code is None:
            yield None
            return
        packed = packed_folders.of_job(spec, base)
        self.registry.made_home()
        with tempfile.TemporaryDirectory(dir=self.home.path, prefix=".code-") as scratch:
            codes.fetch(spec, packed, Path(scratch))
            yield Path(scratch)

    def _record(
        self,
        spec: JobSpec,
        source: str,
        base: Path,
        wanted: str,
        machine: machines.Machine,
        fetched: Path | None,
        submit: Submit | None,
    ) -> Run:
        """Choose a name and a layout, and make folder and store know the run."""
        name = self.registry.free_name(wanted)
        folder = self.home.folder(name)
        spec = dataclasses.replace(spec, name=name, working_dir=run_registry.working_dir(spec, base, folder))
        layout = layouts.choose(spec, machine, folder, self.registry.active_folders())
        run = Run(
            name=name, spec=spec, source=source, engine=LOCAL,
            directory=str(folder.path), submitted_at=self.clock(),
        )  # fmt: skip
        try:
            folder.create()
            for each in fetched.iterdir() if fetched is not None else ():
                each.rename(folder.path / each.name)
            (folder.path / "job.yaml").write_text(source)
            layout.write(folder)
            self.store.create_run(run, states.initial(spec), submit=submit)
        except OSError as error:
            shutil.rmtree(folder.path, ignore_errors=True)
            raise StoreError(
                f"the run's folder {folder.path} cannot be made: {error.strerror or error}",
                "free some room, or set PACELINE_HOME to a folder that can be written",
            ) from error
        except PacelineError:
            shutil.rmtree(folder.path, ignore_errors=True)
            raise
        return run

    def runs(self, *, phases: Sequence[JobPhase] | None = None) -> list[RunSummary]:
        """Return the runs, newest first."""
        return self.store.list_runs(phases=phases, engine=LOCAL)

    def page(self, query: RunQuery) -> RunPage:
        """Return a page of the runs."""
        return self.store.run_page(query, engine=LOCAL)

    def get(self, name: str) -> Run:
        """Return one run.

        Raises:
            NotFound: there is none of that name.
        """
        return self.store.get_run(name)

    def is_lost(self, run: Run | RunSummary) -> bool:
        """Whether the run is lost (see `RunRegistry.is_lost`)."""
        return self.registry.is_lost(run)

    def supervisor_pids(self, run: Run) -> tuple[int, ...]:
        """Return the processes that watch a run, guard and supervisor; empty when it is lost or has ended."""
        return supervisors.pids(folders.RunFolder.of(run))

    def nodes(self) -> Sequence[Node]:
        """Return this machine."""
        return (capacities.node(machines.read(), self._active_specs()),)

    def fit(self, spec: JobSpec) -> Fit:
        """Return whether this machine has a place for all of a job now, beside the others."""
        return capacities.fit(spec, machines.read(), self.registry.active_folders())

    def _active_specs(self) -> list[JobSpec]:
        return [self.get(run.name).spec for run in self.runs(phases=ACTIVE_PHASES)]

    def stop(self, name: str) -> None:
        """Ask a job to end; its replicas get SIGTERM, and SIGKILL after the job's grace.

        Parameter servers do when all others have ended, so it takes up to two graces.

        Raises:
            Conflict: it has ended already.
        """
        run = self.get(name)
        if run.phase.is_final:
            raise Conflict(f"{name} has ended already ({run.phase})")
        self.registry.request(run, STOP)

    def scale(self, name: str, workers: int) -> None:
        """Ask for another number of workers in a job that runs; those of the highest indices go first.

        Raises:
            Conflict: it has ended, or cannot have so many.
            EngineError: this machine has no place for more.
        """
        run = self.get(name)
        self.check_scalable(run, workers)
        with self.changing(name, "scaled"):
            with self.registry.choosing():
                spec = run.spec.with_workers(workers)
                layouts.extend(
                    spec, machines.read(), folders.RunFolder.of(run), self.registry.active_folders()
                )
            self.registry.request(run, f"{SCALE} {workers}")

    def resize(self, name: str, resize: Resize, *, seconds: float | None = None) -> None:
        """Give replicas of a job that runs other cores or memory; none of them restarts.

        Args:
            name: the job.
            resize: what they are to have.
            seconds: for so long; None: for good, and its job file says so from then on.

        Raises:
            Conflict: it does not run, cannot have it, or something else is being changed.
            EngineError: the machine or the host does not have so much, or cannot limit anything.
            WaitTimeout: its supervisor does not answer.
        """
        run = self.get(name)
        self.check_resizable(run, resize)
        folder = folders.RunFolder.of(run)
        resizes.check(run, folder, resize, machines.read())
        with self.changing(name, "resized"):
            if seconds is not None:
                until = self.clock() + seconds
                self.adjust(name, resizings.adjustments(run.spec, resize, until=until))
                return
            spec, source = resizings.resized(run.spec, resize), resizes.source_with(run, resize)
            asked = events.ResizeRequested(spec=spec, source=source)
            resizes.ask(self.registry, run, f"{RESIZE} {encodings.encode(asked)}", RESIZED)

    def probe(
        self,
        name: str,
        *,
        seconds: float,
        most_share: float,
        tell: Callable[[Probe, str], None] = lambda _, __: None,
    ) -> Probe:
        """Find what binds in a job that runs (see `LifeCycle.probe`)."""
        from paceline.services.studying import probes

        times = probes.ProbeTimes.of(self, most=seconds)
        return probes.Prober(jobs=self, times=times, most_share=most_share, tell=tell).probe(name)

    def knobs(self, run: Run) -> frozenset[Knob]:
        """Return what of a run can be adjusted (see `LifeCycle.knobs`)."""
        return resizes.knobs(run, machines.read())

    def adjust(self, name: str, wanted: Sequence[Adjustment]) -> float:
        """Have something of a job that runs be different for a time (see `LifeCycle.adjust`).

        Raises:
            EngineError: the kernel refuses it.
            WaitTimeout: its supervisor does not answer.
        """
        return resizes.ask(self.registry, self.get(name), adjust_request(wanted), ADJUSTED)

    def changing(self, name: str, doing: str) -> contextlib.AbstractContextManager[None]:
        """Keep others from changing a job (see `LifeCycle.changing`)."""
        return change_locks.held(folders.RunFolder.of(self.get(name)), doing)

    def resume(self, name: str) -> None:
        """Bring back a stopped, failed or lost job from its last checkpoint.

        Raises:
            Conflict: it has succeeded, or a supervisor watches it.
        """
        run = self.get(name)
        self.check_resumable(run)
        if run.phase.is_final and not spec_changes.carry_on(self.registry, name):
            spec_changes.bring_back(self.registry, run, run.spec)
        self.registry.supervise(run)

    def change(self, name: str, source: str) -> None:
        """Let a job go on with another job file, from its last checkpoint (`local.spec_changes`)."""
        run = self.get(name)
        if run.phase.is_final:
            self.check_resumable(run)
        spec_changes.change(self.registry, run, source)

    def delete(self, name: str, *, force: bool = False, timeout_seconds: float = 120.0) -> None:
        """Remove a run with its logs, samples and checkpoints.

        Args:
            name: the run.
            force: stop it first if it has not ended.
            timeout_seconds: how long to wait for its end.

        Raises:
            Conflict: it has not ended, and ``force`` is not given.
            WaitTimeout: it did not end in time.
        """
        run = self.get(name)
        if not run.phase.is_final:
            if not force:
                raise Conflict(f"{name} is {run.phase}", f"paceline stop {name}, or delete it with --force")
            self.stop(name)
            run = self.wait(name, timeout_seconds=timeout_seconds)
        folder = folders.RunFolder.of(run)
        engine.release(folder, machines.read())
        self.registry.forget(name, folder)

    def prune_expired(self) -> list[str]:
        """Delete the runs whose own time to live has passed; return their names. Stopped ones are kept."""
        expired = []
        for run in self.runs():
            at = expires_at(run)
            if at is None or at > self.clock():
                continue
            # What cannot be deleted now is no reason not to submit another job; it is tried again.
            with contextlib.suppress(PacelineError):
                self.delete(run.name)
                expired.append(run.name)
        return expired

    def age(self, *, dry_run: bool = False) -> list[Ageing]:
        """Keep less of old runs, as the environment says; return those that it is about.

        Args:
            dry_run: only say which.

        Raises:
            InvalidInput: the environment names no policy.
            StoreError: the store cannot be read or written.
        """
        from paceline.services import retentions
        from paceline.services.observing import job_summaries

        policy, now = retentions.of_environment(), self.clock()
        if dry_run:
            return retentions.due(self.store, policy, now=now, engine=LOCAL)
        aged = retentions.apply(
            self.store,
            policy,
            now=now,
            delete=self.delete,
            conclude=lambda name: job_summaries.conclude(self, name),
            engine=LOCAL,
        )
        return list(aged)

    def import_file(self, path: Path, *, name: str | None = None, origin: str = "") -> Run:
        """Keep a recording as a job that has ended (`services.local.imports`)."""
        from paceline.services.local import imports

        return imports.keep(self.registry, path, name=name, origin=origin)

    def check_resumable(self, run: Run) -> None:
        """Let a run pass that can be brought back, which one out of a file cannot.

        Raises:
            Conflict: it cannot.
        """
        LifeCycle.check_resumable(self, run)  # A class with slots has no super().
        if any(event.kind == IMPORTED for _, event in self.events(run.name)):
            raise Conflict(
                f"{run.name} came out of a recording, which has no checkpoints",
                "submit its job file to train anew",
            )

    def replicas(self, name: str) -> list[ReplicaRow]:
        """Return the replicas of a run.

        Raises:
            NotFound: there is no such run.
        """
        return self.store.replicas(name)

    def events(self, name: str, *, since_id: int = 0) -> list[tuple[int, JobEvent]]:
        """Return what happened to a run after the event of a number, each with its number."""
        return list(self.store.events(name, since_id=since_id))

    def note(self, name: str, event: JobEvent) -> None:
        """Keep what has happened to a run."""
        self.store.append_events(name, [event])

    def situation(self, name: str) -> Situation:
        """Return all that is known of a run."""
        run = self.get(name)
        happened = [event for _, event in self.events(name)]
        return Situation.of(
            run,
            self.replicas(name),
            happened,
            now=self.clock(),
            unattended=job_states.unattended(run, happened) if self.is_lost(run) else (),
            obstacles=job_states.full_disks(run),
            has_checkpoint=job_states.has_checkpoint(run),
        )

    def log_reader(self, run: Run, wanted: logs.LogSelection) -> logs.FolderReader:
        """Return what reads the output of a run's replicas."""
        return logs.FolderReader(folders.RunFolder.of(run), wanted)

    def snapshot(self, name: str) -> Snapshot:
        """Return how a run does now, or did over its whole life (`services.observing.snapshots`)."""
        from paceline.services.observing import snapshots

        run = self.get(name)
        return snapshots.read(self.store, run, now=self.clock(), lost=self.is_lost(run))

    def recording(self, name: str, *, since: float | None = None, thinned: bool = False) -> Recording:
        """Return what was measured of a run, and what happened to it (`services.observing.recordings`)."""
        from paceline.services import machine_facts
        from paceline.services.observing import recordings

        run, facts = self.get(name), machine_facts.facts()
        return recordings.read(
            self.store,
            run,
            at=self.clock(),
            lost=self.is_lost(run),
            facts=facts,
            since=since,
            thinned=thinned,
        )

    def stored(self, name: str) -> Stored:
        """Return where what was measured of a run lies."""
        return Stored(self.store, name)

    def trace_site(self, run: Run) -> FolderTraceSite:
        """Return where traces of a run are asked for and found: its folder."""
        return FolderTraceSite(folders.RunFolder.of(run).path)


def adjust_request(wanted: Sequence[Adjustment]) -> str:
    """Return how a supervisor is asked to have something be different for a time."""
    return f"{ADJUST} {encodings.encode(events.AdjustRequested(adjustments=tuple(wanted)))}"
