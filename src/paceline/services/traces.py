"""Traces of a job: asked for and waited for, or the newest that is there."""

from __future__ import annotations

import time

from paceline.errors import Conflict, NotFound, WaitTimeout
from paceline.model import traces
from paceline.model.roles import Role
from paceline.model.runs import Run
from paceline.model.statuses import JobPhase, ReplicaPhase
from paceline.services.life_cycles import LifeCycle
from paceline.services.trace_sites import TraceSite
from paceline.sources import traces as sources

Reading = sources.Reading
_TRAINERS = (Role.CHIEF, Role.WORKER)


def trainers(jobs: LifeCycle, run: Run) -> list[str]:
    """Return the replicas of a run that train now."""
    return [
        str(row.replica)
        for row in jobs.replicas(run.name)
        if row.replica.role in _TRAINERS and row.phase is ReplicaPhase.RUNNING
    ]


def traceable(jobs: LifeCycle, name: str) -> tuple[Run, list[str]]:
    """Return a job that can be traced, and the replicas that train.

    Raises:
        Conflict: it does not run.
    """
    run = jobs.get(name)
    found = trainers(jobs, run)
    if run.phase is not JobPhase.RUNNING or not found:
        raise Conflict(f"{name} is {run.phase}: no trainer can take a trace", f"paceline get {name}")
    return run, found


def newest(jobs: LifeCycle, run: Run) -> sources.Reading:
    """Return the newest traces of a run.

    Raises:
        NotFound: it has none.
    """
    site = jobs.trace_site(run)
    site.fetch()
    names = sources.names(site.run)
    if not names:
        raise NotFound(
            f"{run.name} has no trace",
            "traces are taken by paceline.training, or by its Tracer in a script of your own",
        )
    return sources.read(site.run, names[-1])


def take(jobs: LifeCycle, name: str, *, timeout_seconds: float) -> sources.Reading:
    """Ask the trainers of a running job for a trace and return it when all have answered, or the time is
    over.

    Raises:
        Conflict: the job does not run.
        WaitTimeout: no trainer has answered in time.
        StoreError: the run's folder cannot be written.
        ClusterError: no trainer can be asked.
    """
    run, wanted = traceable(jobs, name)
    site, trace = jobs.trace_site(run), traces.name_at(jobs.clock())
    with site.asked(trace):
        return _await(jobs, site, trace, wanted, name, timeout_seconds)


def _await(
    jobs: LifeCycle, site: TraceSite, trace: str, wanted: list[str], name: str, timeout_seconds: float
) -> sources.Reading:
    deadline = time.monotonic() + timeout_seconds
    while True:
        site.fetch(trace)
        answered = {path.stem.rpartition(".")[0] for path in sources.files(site.run, trace)}
        over = time.monotonic() >= deadline or jobs.get(name).phase.is_final
        if answered >= set(wanted) or (over and answered):
            return sources.read(site.run, trace)
        if over:
            raise WaitTimeout(
                f"no trainer of {name} has answered within {timeout_seconds:g} s",
                "traces are taken by paceline.training, or by its Tracer in a script of your own; "
                f"steps may be longer than that: paceline top {name}",
            )
        time.sleep(jobs.POLL_SECONDS)
