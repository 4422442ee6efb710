"""Traces of a job: asked for and waited for, or the newest that is there."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from paceline.errors import Conflict, NotFound, StoreError, WaitTimeout
from paceline.model import traces
from paceline.model.roles import Role
from paceline.model.runs import Run
from paceline.model.statuses import JobPhase, ReplicaPhase
from paceline.services.jobs import POLL_SECONDS, Jobs
from paceline.sources import traces as sources

Reading = sources.Reading
_TRAINERS = (Role.CHIEF, Role.WORKER)


def trainers(jobs: Jobs, run: Run) -> list[str]:
    """Return the replicas of a run that train now."""
    return [
        str(row.replica)
        for row in jobs.store.replicas(run.name)
        if row.replica.role in _TRAINERS and row.phase is ReplicaPhase.RUNNING
    ]


def read(run: Run, name: str) -> sources.Reading:
    """Return the traces of a moment."""
    return sources.read(Path(run.directory), name)


def newest(run: Run) -> sources.Reading:
    """Return the newest traces of a run.

    Raises:
        NotFound: it has none.
    """
    folder = Path(run.directory)
    names = sources.names(folder)
    if not names:
        raise NotFound(
            f"{run.name} has no trace",
            "traces are taken by paceline.training, or by its Tracer in a script of your own",
        )
    return sources.read(folder, names[-1])


def take(jobs: Jobs, name: str, *, timeout_seconds: float) -> sources.Reading:
    """Ask the trainers of a running job for a trace and return it when all have answered, or the time is
    over.

    Raises:
        Conflict: the job does not run.
        WaitTimeout: no trainer has answered in time.
        StoreError: the run's folder cannot be written.
    """
    run = jobs.get(name)
    wanted = trainers(jobs, run)
    if run.phase is not JobPhase.RUNNING or not wanted:
        raise Conflict(f"{name} is {run.phase}: no trainer can take a trace", f"paceline get {name}")
    folder = Path(run.directory)
    with asked(folder, jobs.clock()) as trace:
        return _await(jobs, folder, trace, wanted, name, timeout_seconds)


@contextlib.contextmanager
def asked(folder: Path, at: float) -> Iterator[str]:
    """Ask the trainers of a run for a trace as long as this is open; gives its name.

    Raises:
        StoreError: the run's folder cannot be written.
    """
    trace, request = traces.name_at(at), folder / traces.FOLDER / traces.REQUEST
    _write(request, trace)
    try:
        yield trace
    finally:
        request.unlink(missing_ok=True)


def _await(
    jobs: Jobs, folder: Path, trace: str, wanted: list[str], name: str, timeout_seconds: float
) -> sources.Reading:
    deadline = time.monotonic() + timeout_seconds
    while True:
        answered = {path.stem.rpartition(".")[0] for path in sources.files(folder, trace)}
        over = time.monotonic() >= deadline or jobs.get(name).phase.is_final
        if answered >= set(wanted) or (over and answered):
            return sources.read(folder, trace)
        if over:
            raise WaitTimeout(
                f"no trainer of {name} has answered within {timeout_seconds:g} s",
                "traces are taken by paceline.training, or by its Tracer in a script of your own; "
                f"steps may be longer than that: paceline top {name}",
            )
        time.sleep(POLL_SECONDS)


def _write(request: Path, trace: str) -> None:
    try:
        request.parent.mkdir(exist_ok=True)
        temporary = request.with_name(f".{request.name}.tmp")
        temporary.write_text(trace + "\n")
        os.replace(temporary, request)
    except OSError as error:
        raise StoreError(f"{request} cannot be written: {error.strerror or error}") from error
