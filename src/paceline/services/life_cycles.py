"""What can be done with jobs, wherever they run: what the verbs are written against.

What follows from the rest alone, wherever that is, stands here.
"""

from __future__ import annotations

import abc
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from paceline.control import resizings, scalings
from paceline.control.resizings import Resize
from paceline.diagnosing.situations import Situation
from paceline.errors import Conflict, EngineError, WaitTimeout
from paceline.model import quantities
from paceline.model.jobs import run_queries
from paceline.model.jobs.adjustments import Adjustment, Knob
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.run_queries import RunPage, RunQuery
from paceline.model.jobs.runs import JobEvent, Relay, ReplicaRow, Run, RunSummary, Submit
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


#: What is measured on a cluster is known so much later at most: its operator asks for it now and then, and
#: clocks differ.
CLUSTER_DELAY_SECONDS = 15.0


#: A replica that uses so much of its memory needs the rest: what it uses comes and goes.
FULL_MEMORY = 0.95


class Stored(NamedTuple):
    """What was measured of a run: a store, and the run's name in it."""

    store: Store
    name: str


class LifeCycle(abc.ABC):
    """The jobs of a home on this machine (`jobs.Jobs`), or of a namespace (`cluster_jobs.ClusterJobs`).

    A client of a server that gives access to either is one more (`surfaces.client.server_jobs.ServerJobs`).
    """

    __slots__ = ()
    #: How often to look at a job that is waited for.
    POLL_SECONDS: ClassVar[float]
    #: How long what was measured may be on its way.
    DELAY_SECONDS: ClassVar[float] = 0.0
    #: The verb that shows how far a job is.
    LOOK: ClassVar[str] = "top"
    #: Unix seconds.
    clock: Callable[[], float]

    @property
    def is_measured_at_hand(self) -> bool:
        """Whether what is measured of a job is where it can be looked at every second."""
        return self.LOOK == "top"

    @property
    def keeps(self) -> bool:
        """Whether all that was measured of a run is still known when it has ended."""
        return True

    def scope(self) -> str:
        """Return how the names of its runs begin in a store that has other runs, too."""
        return ""

    @abc.abstractmethod
    def submit(
        self, spec: JobSpec, *, source: str, base: Path, name: str | None = None, submit: Submit | None = None
    ) -> Run:
        """Start a job and return at once; with ``submit`` once only, however often it is asked."""

    @contextlib.contextmanager
    def housed(self, spec: JobSpec, study: str) -> Iterator[JobSpec]:
        """Give the job of a study the hosts that it names for as long as this lasts.

        Here they are made when the job begins; so the job is given as it is.
        """
        yield spec

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
        """Whether the run is lost: it should run, but no supervisor watches it."""

    @abc.abstractmethod
    def supervisor_pids(self, run: Run) -> tuple[int, ...]:
        """Return the processes that look after a run, on the machine where it runs."""

    @abc.abstractmethod
    def stop(self, name: str) -> None:
        """Ask a job to end."""

    @abc.abstractmethod
    def resume(self, name: str) -> None:
        """Bring back a job that does not run, from its last checkpoint."""

    def check_resumable(self, run: Run) -> None:
        """Let a run pass that can be brought back.

        Raises:
            Conflict: it has succeeded, or it is being looked after.
        """
        if run.phase is JobPhase.SUCCEEDED:
            raise Conflict(
                f"{run.name} has succeeded: nothing is left to do", "submit it again to train anew"
            )
        if not run.phase.is_final and not self.is_lost(run):
            raise Conflict(f"{run.name} is {run.phase} already", f"paceline {self.LOOK} {run.name}")

    @abc.abstractmethod
    def change(self, name: str, source: str) -> None:
        """Let a job go on as another job file has it, from its last checkpoint."""

    def relays(self, name: str) -> Sequence[Relay]:
        """Return the changes that were asked of a run, but for those that were refused; the oldest first."""
        store, stored = self.stored(name)
        return store.relays(stored)

    @abc.abstractmethod
    def scale(self, name: str, workers: int) -> None:
        """Ask for another number of workers in a job that runs."""

    def check_scalable(self, run: Run, workers: int) -> None:
        """Let a run pass that can go on with so many workers.

        Raises:
            Conflict: it has ended, or cannot have so many.
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
    def resize(self, name: str, resize: Resize, *, seconds: float | None = None) -> None:
        """Give replicas of a job that runs other cores or memory, for good or for so long; none restarts."""

    @abc.abstractmethod
    def knobs(self, run: Run) -> frozenset[Knob]:
        """Return what of a run can be adjusted while it runs."""

    def check_returns(self, run: Run) -> None:  # noqa: B027 - on one machine all returns
        """Let a run pass of which what is taken away for a time comes back for sure.

        Raises:
            Conflict: others might take it meanwhile.
        """

    @abc.abstractmethod
    def adjust(self, name: str, wanted: Sequence[Adjustment]) -> float:
        """Have something of a job that runs be different for a time; one that is over puts it back.

        Returns:
            When it was (Unix seconds).
        """

    @abc.abstractmethod
    def changing(self, name: str, doing: str) -> contextlib.AbstractContextManager[None]:
        """Keep others from changing a job that runs while this lasts, and say to them what is done."""

    @abc.abstractmethod
    def probe(
        self,
        name: str,
        *,
        seconds: float,
        most_share: float,
        tell: Callable[[Probe, str], None] = lambda _, __: None,
    ) -> Probe:
        """Find what binds in a job that runs, by cutting one part after the other (`studying.probes`).

        Args:
            name: the job.
            seconds: that it may take.
            most_share: of what the job does in that time, that it may cost.
            tell: is told how far it is, and what is done next, in few words.

        Raises:
            Conflict: it does not run, or is being changed; or nothing of it can be cut.
        """

    def probes(self, name: str) -> Sequence[Probe]:
        """Return what probes of a run have found, the oldest first; one that goes on has no end."""
        store, stored = self.stored(name)
        return store.probes(stored)

    def check_resizable(self, run: Run, resize: Resize) -> None:
        """Let a run pass of which replicas can be resized so.

        Raises:
            Conflict: it does not run, cannot have it, or uses more memory than that.
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
        """Return which replica uses more memory than it would have; the kernel would kill it."""
        if resize.memory_bytes is None:
            return None
        about = set(resizings.targets(run.spec, resize))
        try:
            measured = self.snapshot(run.name).replicas
        except EngineError:  # Nothing is measured yet; the kernel, or the kubelet, has the last word.
            return None
        for each in measured:
            if each.replica in about and (each.memory_bytes or 0) > resize.memory_bytes * FULL_MEMORY:
                used, asked = map(quantities.format_bytes, (each.memory_bytes, resize.memory_bytes))
                return f"{each.replica} uses {used}, so with {asked} of memory the kernel would kill it"
        return None

    @abc.abstractmethod
    def delete(self, name: str, *, force: bool = False) -> None:
        """Remove a run and all that is kept of it."""

    def prune(self, *, older_than_seconds: float, dry_run: bool = False) -> list[str]:
        """Delete the runs that ended longer ago; return their names."""
        limit = self.clock() - older_than_seconds
        ended = [run for run in self.runs() if run.phase.is_final and (run.finished_at or 0) <= limit]
        for run in ended if not dry_run else []:
            self.delete(run.name)
        return [run.name for run in ended]

    def age(self, *, dry_run: bool = False) -> list[Ageing]:
        """Keep less of old runs, as the policy says (`services.retentions`); return those that it is about.

        Raises:
            Conflict: that is not done from here.
        """
        raise Conflict(
            "old jobs are kept in less detail by the server that looks at their store",
            "paceline prune --older-than 30d deletes them",
        )

    def import_file(self, path: Path, *, name: str | None = None, origin: str = "") -> Run:
        """Keep the recording of a file as a job that has ended.

        Args:
            path: the file.
            name: of the job; else its own, with a number when that is taken.
            origin: what the file is called; else by its name.

        Raises:
            Conflict: that is not done here.
        """
        raise Conflict("recordings become jobs of a home, not of a cluster", f"paceline import {path.name}")

    def wait(
        self,
        name: str,
        *,
        timeout_seconds: float | None = None,
        until: Callable[[Run], bool] = lambda run: run.phase.is_final,
    ) -> Run:
        """Return the run as soon as ``until`` holds, or when it is final.

        Raises:
            WaitTimeout: not within so long.
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
                    f"paceline {self.LOOK} {name}",
                )
            time.sleep(self.POLL_SECONDS)

    def nodes(self) -> Sequence[Node]:
        """Return where replicas may run, and how much of each is taken.

        Raises:
            Conflict: that cannot be seen from here.
        """
        raise Conflict("what there is where jobs run cannot be seen from here", "GET /api/v1/cluster")

    @abc.abstractmethod
    def fit(self, spec: JobSpec) -> Fit:
        """Return whether all of a job fits now."""

    @abc.abstractmethod
    def replicas(self, name: str) -> list[ReplicaRow]:
        """Return the replicas of a run."""

    @abc.abstractmethod
    def events(self, name: str, *, since_id: int = 0) -> list[tuple[int, JobEvent]]:
        """Return what happened to a run after the event of a number, each with its number."""

    @abc.abstractmethod
    def note(self, name: str, event: JobEvent) -> None:
        """Keep what has happened to a run, where that is kept."""

    @abc.abstractmethod
    def situation(self, name: str) -> Situation:
        """Return all that is known of a run, to say why it is where it is (`diagnosing`)."""

    @abc.abstractmethod
    def log_reader(self, run: Run, wanted: LogSelection) -> Reader:
        """Return what reads the output of a run's replicas, and reads on."""

    def logs(
        self, run: Run, wanted: LogSelection = logs.ALL, *, follow: Callable[[], bool] | None = None
    ) -> Iterator[LogLine]:
        """Yield the output of a run's replicas, with ``follow`` as long as that says so (`logs.lines`)."""
        return logs.lines(self.log_reader(run, wanted), follow=follow, pause_seconds=self.POLL_SECONDS)

    def gone(self, name: str) -> list[tuple[ReplicaId, int]]:
        """Return the attempts of a run whose output is not there any more."""
        return []

    @abc.abstractmethod
    def snapshot(self, name: str) -> Snapshot:
        """Return how a run does now, or did over its whole life."""

    @abc.abstractmethod
    def recording(self, name: str, *, since: float | None = None, thinned: bool = False) -> Recording:
        """Return what was measured of a run, all of it or from a moment on, and what happened to it.

        Args:
            name: the run.
            since: Unix seconds; of step reports the latest of each replica is there, too, if it is older.
            thinned: in longer intervals if it is much (`recordings.read`).
        """

    @abc.abstractmethod
    def stored(self, name: str) -> Stored:
        """Return where what was measured of a run lies, to read some of it."""

    @abc.abstractmethod
    def trace_site(self, run: Run) -> TraceSite:
        """Return where traces of a run are asked for and found."""
