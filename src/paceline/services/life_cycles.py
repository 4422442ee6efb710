"""What can be known of jobs and done with them, wherever they run.

Code asks for as little as it needs: `JobReader` is what is known, `JobControl` starts, ends and changes jobs,
`LiveControl` changes jobs that run, and `JobPlacement` knows where jobs can run. `LifeCycle` is all of these.
Where a store is at hand, it is a `StoredJobReader`, too. Operations that follow from the others alone, in
every place, are implemented here.
"""

from __future__ import annotations

import abc
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from paceline.control import resizings, scalings
from paceline.control.resizings import Resize
from paceline.diagnosing.situations import Situation
from paceline.errors import Conflict, EngineError, WaitTimeout
from paceline.model import quantities
from paceline.model.jobs import run_queries
from paceline.model.jobs.adjustments import Adjustment, Knob
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.run_queries import RunPage, RunQuery
from paceline.model.jobs.runs import JobEvent, ReplicaRow, Run, RunSummary, SpecChange, Submit
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import ReplicaId
from paceline.services import logs
from paceline.services.logs import LogLine, LogSelection, Reader

if TYPE_CHECKING:
    from paceline.model.jobs.nodes import Node
    from paceline.model.jobs.retentions import Ageing
    from paceline.model.measures.probes import Probe
    from paceline.model.measures.recordings import Recording
    from paceline.model.measures.snapshots import Snapshot
    from paceline.scheduling.fits import Fit
    from paceline.services.trace_sites import TraceSite
    from paceline.stores import Store


#: Measurements of a cluster arrive at most this much later: its operator reads agents in rounds, and clocks
#: differ.
CLUSTER_DELAY_SECONDS = 15.0


#: A replica that uses more than this share of a requested memory limit does not get it: its use fluctuates.
FULL_MEMORY = 0.95


class Stored(NamedTuple):
    """Where the measurements of a run are stored: a store, and the run's name in it."""

    store: Store
    name: str


class JobReader(Protocol):
    """What is known of jobs: their runs, replicas, events, measurements and output.

    Attributes:
        clock: Unix seconds.
    """

    __slots__ = ()
    #: Seconds between two looks at a job while waiting for it.
    POLL_SECONDS: ClassVar[float]
    #: How long measurements may take to arrive, in seconds.
    DELAY_SECONDS: ClassVar[float] = 0.0
    #: Whether the measurements of a job can be read locally, every second.
    IS_MEASURED_AT_HAND: ClassVar[bool] = True
    #: The CLI verb that shows the progress of a job.
    PROGRESS_VERB: ClassVar[str] = "top"
    clock: Callable[[], float]

    @property
    def keeps(self) -> bool:
        """Whether all measurements of a run remain available after it has ended."""
        return True

    def scope(self) -> str:
        """Return the prefix of its runs' names in a store that holds other runs, too."""
        return ""

    @abc.abstractmethod
    def runs(self, *, phases: Sequence[JobPhase] | None = None) -> list[RunSummary]:
        """Return the runs, newest first."""

    def page(self, query: RunQuery) -> RunPage:
        """Return a page of the runs."""
        return run_queries.page(self.runs(), query)

    @abc.abstractmethod
    def get(self, name: str) -> Run:
        """Return one run."""

    @abc.abstractmethod
    def is_lost(self, run: Run | RunSummary) -> bool:
        """Return whether the run is lost: it should run, but no supervisor watches it."""

    @abc.abstractmethod
    def replicas(self, name: str) -> list[ReplicaRow]:
        """Return the replicas of a run."""

    @abc.abstractmethod
    def events(self, name: str, *, since_id: int = 0) -> list[tuple[int, JobEvent]]:
        """Return the events of a run after the event numbered ``since_id``, each with its number."""

    @abc.abstractmethod
    def spec_changes(self, name: str) -> Sequence[SpecChange]:
        """Return the changes requested for a run, without the refused ones, oldest first."""

    @abc.abstractmethod
    def probes(self, name: str) -> Sequence[Probe]:
        """Return the results of a run's probes, oldest first; a probe under way has no end."""

    @abc.abstractmethod
    def situation(self, name: str) -> Situation:
        """Return everything known of a run that explains its present phase (`diagnosing`)."""

    @abc.abstractmethod
    def snapshot(self, name: str) -> Snapshot:
        """Return how a run does now, or did over its whole life."""

    @abc.abstractmethod
    def recording(self, name: str, *, since: float | None = None, thinned: bool = False) -> Recording:
        """Return the measurements and events of a run, all of them or from a moment on.

        Args:
            name: the run.
            since: Unix seconds. The latest step report of each replica is included even if it is older.
            thinned: combine the measurements of a large job into longer intervals (`recordings.read`).
        """

    def thresholds(self) -> Mapping[str, float]:
        """Return the thresholds of rules that the site has set, by name (`observing.site_thresholds`).

        Raises:
            InvalidInput: the site's file is wrong.
        """
        return {}

    @abc.abstractmethod
    def trace_site(self, run: Run) -> TraceSite:
        """Return where traces of a run are requested and found."""

    @abc.abstractmethod
    def log_reader(self, run: Run, wanted: LogSelection) -> Reader:
        """Return a reader of the output of a run's replicas, which can also follow it."""

    def logs(
        self, run: Run, wanted: LogSelection = logs.ALL, *, follow: Callable[[], bool] | None = None
    ) -> Iterator[LogLine]:
        """Yield the output of a run's replicas, and more while ``follow`` returns True (`logs.lines`)."""
        return logs.lines(self.log_reader(run, wanted), follow=follow, pause_seconds=self.POLL_SECONDS)

    def gone(self, name: str) -> list[tuple[ReplicaId, int]]:
        """Return the attempts of a run whose output no longer exists."""
        return []


class StoredJobReader(JobReader, Protocol):
    """Jobs with a store at hand: all kinds but the client of a server."""

    __slots__ = ()

    @abc.abstractmethod
    def stored(self, name: str) -> Stored:
        """Return where the measurements of a run are stored, to read part of them."""

    def spec_changes(self, name: str) -> Sequence[SpecChange]:
        """Return the changes requested for a run, without the refused ones, oldest first."""
        store, stored = self.stored(name)
        return store.spec_changes(stored)

    def probes(self, name: str) -> Sequence[Probe]:
        """Return the results of a run's probes, oldest first; a probe under way has no end."""
        store, stored = self.stored(name)
        return store.probes(stored)


class JobControl(JobReader, Protocol):
    """What starts, ends and changes jobs."""

    __slots__ = ()

    @abc.abstractmethod
    def submit(
        self, spec: JobSpec, *, source: str, base: Path, name: str | None = None, submit: Submit | None = None
    ) -> Run:
        """Start a job and return at once; with ``submit``, repeated calls start it only once."""

    @contextlib.contextmanager
    def housed(self, spec: JobSpec, study: str) -> Iterator[JobSpec]:
        """Reserve the hosts that a study's job names, until the context ends.

        On one machine, hosts are made when the job begins, so the job is returned unchanged.
        """
        yield spec

    @abc.abstractmethod
    def supervisor_pids(self, run: Run) -> tuple[int, ...]:
        """Return the processes that supervise a run, on the machine where it runs."""

    @abc.abstractmethod
    def stop(self, name: str) -> None:
        """Ask a job to end."""

    @abc.abstractmethod
    def resume(self, name: str) -> None:
        """Resume a job that does not run, from its last checkpoint."""

    def check_resumable(self, run: Run) -> None:
        """Check that a run can be resumed.

        Raises:
            Conflict: the run has succeeded, or it is supervised.
        """
        if run.phase is JobPhase.SUCCEEDED:
            raise Conflict(
                f"{run.name} has succeeded: nothing is left to do", "submit it again to train anew"
            )
        if not run.phase.is_final and not self.is_lost(run):
            raise Conflict(f"{run.name} is {run.phase} already", f"paceline {self.PROGRESS_VERB} {run.name}")

    @abc.abstractmethod
    def change(self, name: str, source: str) -> None:
        """Continue a job with another job file, from its last checkpoint."""

    @abc.abstractmethod
    def scale(self, name: str, workers: int) -> None:
        """Request another number of workers for a running job."""

    def check_scalable(self, run: Run, workers: int) -> None:
        """Check that a run can continue with this number of workers.

        Raises:
            Conflict: the run has ended or is stopping, or it cannot have this number of workers.
        """
        if run.phase.is_final or run.phase is JobPhase.STOPPING:
            raise Conflict(
                f"{run.name} does not run ({run.phase}), so its workers cannot be scaled",
                "submit it again with other replicas",
            )
        conflict = scalings.conflict(run.spec, workers)
        if conflict is not None:
            raise Conflict(f"{run.name} cannot be scaled: {conflict}", f"paceline describe {run.name}")

    @abc.abstractmethod
    def delete(self, name: str, *, force: bool = False) -> None:
        """Remove a run and everything stored of it."""

    def check_deletable(self, run: Run | RunSummary) -> None:
        """Check that a run can be deleted without force.

        Raises:
            Conflict: the run has not ended.
        """
        if not run.phase.is_final:
            raise Conflict(
                f"{run.name} is {run.phase}, and only jobs that have ended can be deleted",
                f"stop it first: paceline stop {run.name}; or stop and delete it with --force",
            )

    def prune(self, *, older_than_seconds: float, dry_run: bool = False) -> list[str]:
        """Delete the runs that ended at least this long ago; return their names."""
        limit = self.clock() - older_than_seconds
        ended = [run for run in self.runs() if run.phase.is_final and (run.finished_at or 0) <= limit]
        for run in ended if not dry_run else []:
            self.delete(run.name)
        return [run.name for run in ended]

    def age(self, *, dry_run: bool = False) -> list[Ageing]:
        """Reduce the detail stored of old runs by policy (`services.retentions`); return these runs.

        Raises:
            Conflict: this cannot be done from here.
        """
        raise Conflict(
            "measurements of old jobs cannot be thinned out from here: the server of their store does that",
            "or delete old jobs: paceline prune --older-than 30d",
        )

    def import_file(self, path: Path, *, name: str | None = None, origin: str = "") -> Run:
        """Import a recording from a file as a job that has ended.

        Args:
            path: the file.
            name: the job's name; by default the recorded name, with a number if that is taken.
            origin: what to call the file; by default its name.

        Raises:
            Conflict: recordings cannot be imported here.
        """
        raise Conflict(
            f"{path.name} cannot be imported into a cluster, only into the home of a machine",
            f"on a machine, without --engine kubernetes, use: import {path.name}",
        )

    @abc.abstractmethod
    def note(self, name: str, event: JobEvent) -> None:
        """Store an event of a run, where events are stored."""

    def wait(
        self,
        name: str,
        *,
        timeout_seconds: float | None = None,
        until: Callable[[Run], bool] = lambda run: run.phase.is_final,
    ) -> Run:
        """Return the run as soon as ``until`` holds, or when it is final.

        Raises:
            WaitTimeout: neither happened within ``timeout_seconds``.
            Conflict: the job is lost.
        """
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while True:
            run = self.get(name)
            if until(run) or run.phase.is_final:
                return run
            if self.is_lost(run):
                raise Conflict(f"{name} is lost: its supervisor died", f"paceline resume {name}")
            if deadline is not None and time.monotonic() >= deadline:
                raise WaitTimeout(
                    f"{name} is still {run.phase} after {timeout_seconds:g} s",
                    f"paceline {self.PROGRESS_VERB} {name}",
                )
            time.sleep(self.POLL_SECONDS)


class LiveControl(JobReader, Protocol):
    """What changes a job while it runs, without restarts."""

    __slots__ = ()

    @abc.abstractmethod
    def resize(self, name: str, resize: Resize, *, seconds: float | None = None) -> None:
        """Resize replicas of a running job without restarts, permanently or for ``seconds``."""

    def check_resizable(self, run: Run, resize: Resize) -> None:
        """Check that replicas of a run can be resized as requested.

        Raises:
            Conflict: the run does not run, its job cannot have this size, or a replica uses more memory than
                the new limit.
        """
        if run.phase.is_final or run.phase in (JobPhase.PENDING, JobPhase.STOPPING):
            raise Conflict(
                f"{run.name} does not run ({run.phase}), so its replicas cannot be resized",
                "change its job file",
            )
        conflict = resizings.conflict(run.spec, resize) or self._too_little(run, resize)
        if conflict is not None:
            raise Conflict(f"{run.name} cannot be resized: {conflict}", f"paceline describe {run.name}")

    def _too_little(self, run: Run, resize: Resize) -> str | None:
        """Return which replica uses more memory than its new limit, so that the kernel would kill it."""
        if resize.memory_bytes is None:
            return None
        about = set(resizings.targets(run.spec, resize))
        try:
            measured = self.snapshot(run.name).replicas
        except EngineError:  # Nothing is measured yet; the kernel or the kubelet decides.
            return None
        for each in measured:
            if each.replica in about and (each.memory_bytes or 0) > resize.memory_bytes * FULL_MEMORY:
                used, asked = map(quantities.format_bytes, (each.memory_bytes, resize.memory_bytes))
                return f"{each.replica} uses {used}, so with {asked} of memory the kernel would kill it"
        return None

    @abc.abstractmethod
    def knobs(self, run: Run) -> frozenset[Knob]:
        """Return the settings of a run that can be adjusted while it runs."""

    @abc.abstractmethod
    def check_returns(self, run: Run) -> None:
        """Check that resources taken from a run for a limited time can surely be given back.

        Raises:
            Conflict: others might take the resources meanwhile.
        """

    @abc.abstractmethod
    def adjust(self, name: str, wanted: Sequence[Adjustment]) -> float:
        """Adjust settings of a running job for a limited time.

        An adjustment whose end has passed restores the setting.

        Returns:
            When the adjustments took effect (Unix seconds).
        """

    @abc.abstractmethod
    def changing(self, name: str, doing: str) -> contextlib.AbstractContextManager[None]:
        """Keep others from changing a running job while the context is open, and show them what is done."""

    @abc.abstractmethod
    def probe(
        self,
        name: str,
        *,
        seconds: float,
        most_share: float,
        tell: Callable[[Probe, str], None] = lambda _, __: None,
    ) -> Probe:
        """Find what limits a running job, by cutting one resource after the other (`studying.probes`).

        Args:
            name: the job.
            seconds: how long the probe may take.
            most_share: the largest share of the job's work in that time that the probe may cost.
            tell: called with the probe so far and a short description of its next step.

        Raises:
            Conflict: the job does not run or is being changed, or none of its resources can be cut.
        """

    @abc.abstractmethod
    def keep_probe(self, probe: Probe) -> None:
        """Store the result of a probe, where results are stored."""


class JobPlacement(Protocol):
    """Where jobs can run."""

    __slots__ = ()

    def nodes(self) -> Sequence[Node]:
        """Return the nodes on which replicas may run, and how much of each is taken.

        Raises:
            Conflict: the nodes cannot be seen from here.
        """
        raise Conflict("a client of a server cannot see its nodes", "ask the server: GET /api/v1/cluster")

    @abc.abstractmethod
    def fit(self, spec: JobSpec) -> Fit:
        """Return whether the whole job fits now."""


class LifeCycle(JobControl, LiveControl, JobPlacement):
    """The jobs of a home on this machine (`jobs.Jobs`), or of a namespace (`cluster.jobs.ClusterJobs`).

    A client of a server that gives access to either is a third kind
    (`surfaces.client.server_jobs.ServerJobs`).
    """

    __slots__ = ()


class StoredLifeCycle(StoredJobReader, LifeCycle):
    """All that can be done with jobs with a store at hand."""

    __slots__ = ()

    def keep_probe(self, probe: Probe) -> None:
        """Store the result of a probe, if measurements of its run are stored here."""
        if self.keeps:
            store, stored = self.stored(probe.run)
            store.save_probe(stored, probe)
