"""What can be done with jobs, wherever they run: the port that the verbs are written against."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from paceline.model.jobs import JobSpec
from paceline.model.roles import ReplicaId
from paceline.model.runs import JobEvent, ReplicaRow, Run, RunSummary
from paceline.model.statuses import JobPhase
from paceline.services.logs import LogLine


class LifeCycle(Protocol):
    """The jobs of a home on this machine (`jobs.Jobs`), or of a namespace (`cluster_jobs.ClusterJobs`)."""

    def submit(self, spec: JobSpec, *, source: str, base: Path, name: str | None = None) -> Run:
        """Start a job and return at once."""

    def runs(self, *, phases: Sequence[JobPhase] | None = None) -> list[RunSummary]:
        """Return the runs, newest first."""

    def get(self, name: str) -> Run:
        """Return one run."""

    def is_lost(self, run: Run | RunSummary) -> bool:
        """Whether the run should be looked after, but nobody does."""

    def supervisor_pids(self, run: Run) -> tuple[int, ...]:
        """Return the processes on this machine that look after a run."""

    def stop(self, name: str) -> None:
        """Ask a job to end."""

    def resume(self, name: str) -> None:
        """Bring back a job that does not run, from its last checkpoint."""

    def check_resumable(self, run: Run) -> None:
        """Let a run pass that can be brought back."""

    def delete(self, name: str, *, force: bool = False) -> None:
        """Remove a run and all that is kept of it."""

    def prune(self, *, older_than_seconds: float, dry_run: bool = False) -> list[str]:
        """Delete the runs that ended longer ago; return their names."""

    def wait(
        self,
        name: str,
        *,
        timeout_seconds: float | None = None,
        until: Callable[[Run], bool] = lambda run: run.phase.is_final,
    ) -> Run:
        """Return the run as soon as ``until`` holds, or when it is final."""

    def replicas(self, name: str) -> list[ReplicaRow]:
        """Return the replicas of a run."""

    def events(self, name: str, *, since_id: int = 0) -> list[tuple[int, JobEvent]]:
        """Return what happened to a run after the event of a number, each with its number."""

    def logs(
        self,
        run: Run,
        *,
        wanted: Callable[[ReplicaId], bool] = lambda replica: True,
        follow: Callable[[], bool] | None = None,
        tail: int | None = None,
        attempt: int | None = None,
        since: float | None = None,
    ) -> Iterator[LogLine]:
        """Yield the output of a run's replicas (`services.logs.lines`)."""
