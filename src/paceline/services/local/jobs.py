"""The life cycle of jobs on this machine: submit, list, wait, stop, resume, delete, prune."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from paceline.services.life_cycles import JobControl, Stored, StoredLifeCycle
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


@dataclasses.dataclass(frozen=True, slots=True)
class Jobs(StoredLifeCycle):
    """The operations on the jobs of one home."""

    POLL_SECONDS: ClassVar[float] = run_registry.POLL_SECONDS
    home: state_dirs.Home
    store: Store
    clock: Callable[[], float] = time.time

    @property
    def registry(self) -> RunRegistry:
        """The registry of this home's runs, with their folders and supervisors."""
        return RunRegistry(self.home, self.store, self.clock)

    def submit(
        self, spec: JobSpec, *, source: str, base: Path, name: str | None = None, submit: Submit | None = None
    ) -> Run:
        """Start a job and return at once; nothing is left behind if that fails.

        Args:
            spec: the job.
            source: the text of its job file, stored unchanged.
            base: the folder that a relative working directory starts from.
            name: replaces the job's own name; a number is added if a run of that name exists.
            submit: identifies this submit. If it was made before, the run that it made is returned.

        Raises:
            Conflict: something else was submitted with the same key.
            InvalidInput: a variable plan that the job names is invalid, or not for this job.
            NotFound: a variable plan or a folder of code that the job names does not exist.
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
        """Return the run of an earlier submit; its caller may have been killed before the run began."""
        run = self.store.get_run(name)
        if run.phase is JobPhase.PENDING and self.is_lost(run):
            self.registry.supervise(run)
        return run

    @contextlib.contextmanager
    def _fetched(self, spec: JobSpec, base: Path) -> Iterator[Path | None]:
        """Fetch the job's code into a temporary folder; the run takes its contents over."""
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
        """Choose a name and a layout, and record the run in its folder and in the store."""
        name = self.registry.free_name(wanted)
        folder = self.home.folder(name)
        spec = dataclasses.replace(spec, name=name, working_dir=run_registry.working_dir(spec, base, folder))
        layout = layouts.choose(spec, machine, folder, self.registry.active_folders())
        run = Run(
            name=name, spec=spec, source=source, engine=LOCAL,
            directory=str(folder.path), submitted_at=self.clock(),
        )  # fmt: skip
        with _making(folder):
            folder.create()
        # Only from here on the folder is this run's, and may be removed again.
        try:
            with _making(folder):
                for each in fetched.iterdir() if fetched is not None else ():
                    each.rename(folder.path / each.name)
                folder.write_source(source)
                layout.write(folder)
            self.store.create_run(run, states.initial(spec), submit=submit)
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
            NotFound: no run has this name.
        """
        return self.store.get_run(name)

    def is_lost(self, run: Run | RunSummary) -> bool:
        """Return whether the run is lost (see `RunRegistry.is_lost`)."""
        return self.registry.is_lost(run)

    def supervisor_pids(self, run: Run) -> tuple[int, ...]:
        """Return the processes that watch a run, guard and supervisor; empty if it is lost or has ended."""
        return supervisors.pids(folders.RunFolder.of(run))

    def nodes(self) -> Sequence[Node]:
        """Return this machine."""
        return (capacities.node(machines.read(), self._active_specs()),)

    def fit(self, spec: JobSpec) -> Fit:
        """Return whether the whole job fits on this machine now, beside the other jobs."""
        return capacities.fit(spec, machines.read(), self.registry.active_folders())

    def _active_specs(self) -> list[JobSpec]:
        return [self.get(run.name).spec for run in self.runs(phases=ACTIVE_PHASES)]

    def stop(self, name: str) -> None:
        """Ask a job to end; its replicas get SIGTERM, and SIGKILL after the job's grace period.

        Parameter servers get SIGTERM when all others have ended, so stopping takes up to two grace periods.

        Raises:
            Conflict: the job has ended already.
        """
        run = self.get(name)
        if run.phase.is_final:
            raise Conflict(f"{name} has ended already ({run.phase})")
        self.registry.request(run, STOP)

    def scale(self, name: str, workers: int) -> None:
        """Request another number of workers for a running job; workers of the highest indices go first.

        Raises:
            Conflict: the job has ended, or cannot have this number of workers.
            EngineError: this machine has no place for more workers.
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
        """Give replicas of a running job other cores or memory; none of them restarts.

        Args:
            name: the job.
            resize: the new cores or memory of the replicas.
            seconds: how long the change lasts; None: permanently, and the job file is changed as well.

        Raises:
            Conflict: the job does not run, it cannot have this size, or another change is under way.
            EngineError: the machine or the host is too small, or cannot limit resources.
            WaitTimeout: the supervisor does not answer.
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
        """Find what limits a running job (see `LifeCycle.probe`)."""
        from paceline.services.studying import probes

        return probes.Prober.of(self, seconds=seconds, most_share=most_share, tell=tell).probe(name)

    def knobs(self, run: Run) -> frozenset[Knob]:
        """Return the settings of a run that can be adjusted (see `LifeCycle.knobs`)."""
        return resizes.knobs(run, machines.read())

    def check_returns(self, run: Run) -> None:
        """Accept every run: on one machine all that is taken for a time can be given back."""

    def adjust(self, name: str, wanted: Sequence[Adjustment]) -> float:
        """Adjust settings of a running job for a limited time (see `LifeCycle.adjust`).

        Raises:
            EngineError: the kernel refuses the adjustment.
            WaitTimeout: the supervisor does not answer.
        """
        return resizes.ask(self.registry, self.get(name), adjust_request(wanted), ADJUSTED)

    def changing(self, name: str, doing: str) -> contextlib.AbstractContextManager[None]:
        """Keep others from changing a job (see `LifeCycle.changing`)."""
        return change_locks.held(folders.RunFolder.of(self.get(name)), doing)

    def resume(self, name: str) -> None:
        """Resume a stopped, failed or lost job from its last checkpoint.

        Raises:
            Conflict: the job has succeeded, or a supervisor watches it.
        """
        run = self.get(name)
        self.check_resumable(run)
        if run.phase.is_final and not spec_changes.carry_on(self.registry, name):
            spec_changes.bring_back(self.registry, run, run.spec)
        self.registry.supervise(run)

    def change(self, name: str, source: str) -> None:
        """Continue a job with another job file, from its last checkpoint (`local.spec_changes`)."""
        run = self.get(name)
        if run.phase.is_final:
            self.check_resumable(run)
        spec_changes.change(self.registry, run, source)

    def delete(self, name: str, *, force: bool = False, timeout_seconds: float = 120.0) -> None:
        """Remove a run with its logs, samples and checkpoints.

        Args:
            name: the run.
            force: stop the run first if it has not ended.
            timeout_seconds: how long to wait for its end.

        Raises:
            Conflict: the run has not ended, and ``force`` is not given.
            WaitTimeout: the run did not end in time.
        """
        run = self.get(name)
        if not force:
            self.check_deletable(run)
        if not run.phase.is_final:
            self.stop(name)
            run = self.wait(name, timeout_seconds=timeout_seconds)
        folder = folders.RunFolder.of(run)
        engine.release(folder, machines.read())
        self.registry.forget(name, folder)

    def prune_expired(self) -> list[str]:
        """Delete the runs whose own time to live has passed; return their names. Stopped runs are kept."""
        expired = []
        for run in self.runs():
            at = expires_at(run)
            if at is None or at > self.clock():
                continue
            # A run that cannot be deleted now must not prevent a submit; the next submit tries again.
            with contextlib.suppress(PacelineError):
                self.delete(run.name)
                expired.append(run.name)
        return expired

    def age(self, *, dry_run: bool = False) -> list[Ageing]:
        """Reduce the detail stored of old runs, by the policy in the environment; return the runs concerned.

        Args:
            dry_run: only return the runs that are due.

        Raises:
            InvalidInput: the environment sets no valid policy.
            StoreError: the store cannot be read or written.
        """
        from paceline.services import retentions
        from paceline.services.observing import diagnosis_summaries

        policy, now = retentions.of_environment(), self.clock()
        if dry_run:
            return retentions.due(self.store, policy, now=now, engine=LOCAL)
        aged = retentions.apply(
            self.store,
            policy,
            now=now,
            delete=self.delete,
            conclude=lambda name: diagnosis_summaries.conclude(self, name),
            engine=LOCAL,
        )
        return list(aged)

    def import_file(self, path: Path, *, name: str | None = None, origin: str = "") -> Run:
        """Import a recording as a job that has ended (`services.local.imports`)."""
        from paceline.services.local import imports

        return imports.keep(self.registry, path, name=name, origin=origin)

    def check_resumable(self, run: Run) -> None:
        """Check that a run can be resumed; an imported run cannot.

        Raises:
            Conflict: the run cannot be resumed.
        """
        JobControl.check_resumable(self, run)  # A class with slots has no super().
        if any(event.kind == IMPORTED for _, event in self.events(run.name)):
            raise Conflict(
                f"{run.name} came out of a recording, which has no checkpoints",
                "submit its job file to train anew",
            )

    def replicas(self, name: str) -> list[ReplicaRow]:
        """Return the replicas of a run.

        Raises:
            NotFound: no run has this name.
        """
        return self.store.replicas(name)

    def events(self, name: str, *, since_id: int = 0) -> list[tuple[int, JobEvent]]:
        """Return the events of a run after the event numbered ``since_id``, each with its number."""
        return list(self.store.events(name, since_id=since_id))

    def note(self, name: str, event: JobEvent) -> None:
        """Store an event of a run."""
        self.store.append_events(name, [event])

    def situation(self, name: str) -> Situation:
        """Return everything known of a run that explains its present phase."""
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
        """Return a reader of the output of a run's replicas."""
        return logs.FolderReader(folders.RunFolder.of(run), wanted)

    def snapshot(self, name: str) -> Snapshot:
        """Return how a run does now, or did over its whole life (`services.observing.snapshots`)."""
        from paceline.services.observing import snapshots

        run = self.get(name)
        return snapshots.read(self.store, run, now=self.clock(), lost=self.is_lost(run))

    def recording(self, name: str, *, since: float | None = None, thinned: bool = False) -> Recording:
        """Return the measurements and events of a run (`services.observing.recordings`).

        Raises:
            InvalidInput: the file of the site's thresholds is wrong.
        """
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
            thresholds=self.thresholds(),
        )

    def thresholds(self) -> Mapping[str, float]:
        """Return the thresholds that the file in the home sets."""
        from paceline.services.observing import site_thresholds

        return site_thresholds.load_thresholds(self.home.path)

    def stored(self, name: str) -> Stored:
        """Return where the measurements of a run are stored."""
        return Stored(self.store, name)

    def trace_site(self, run: Run) -> FolderTraceSite:
        """Return where traces of a run are requested and found: its folder."""
        return FolderTraceSite(folders.RunFolder.of(run).path)


@contextlib.contextmanager
def _making(folder: folders.RunFolder) -> Iterator[None]:
    """Say of a failure within the block that the folder of a run cannot be made."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"the run's folder {folder.path} cannot be made: {error.strerror or error}",
            "free some room, or set PACELINE_HOME to a folder that can be written",
        ) from error


def adjust_request(wanted: Sequence[Adjustment]) -> str:
    """Return the request that asks a supervisor for adjustments."""
    return f"{ADJUST} {encodings.encode(events.AdjustRequested(adjustments=tuple(wanted)))}"
