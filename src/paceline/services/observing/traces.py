"""Traces of a job: takes a new trace, or reads the newest one."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from paceline.errors import Conflict, NotFound, WaitTimeout
from paceline.model.jobs.job_specs import Framework
from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.roles import Role
from paceline.model.traces import traced_steps
from paceline.services.life_cycles import JobReader
from paceline.services.trace_sites import TraceSite
from paceline.sources import traces as sources

Reading = sources.TraceReading
_TRAINERS = (Role.CHIEF, Role.WORKER)
#: The roles whose replicas have a TensorFlow server.
_PROFILED = (Role.PS, Role.CHIEF, Role.WORKER)
#: How long trainers may take to trace a step before their servers are profiled.
SESSION_SECONDS = 3.0
#: How long the profiler records, in the first attempt and in the second.
PROFILE_MILLISECONDS = (1000, 4000)
#: Within this time every agent has seen a request: it checks once a second.
LEAD_SECONDS = 2.0
#: How long a server may take to write its profile, and its agent to compress it: an agent waits 20 s.
PROFILE_SECONDS = 30.0


def window(now: float, milliseconds: int) -> traced_steps.Window:
    """Return when servers are profiled if the request is made now (Unix seconds)."""
    return traced_steps.Window(now + LEAD_SECONDS, milliseconds)


def running(jobs: JobReader, run: Run, roles: Collection[Role]) -> set[str]:
    """Return the replicas of a run that have one of the roles and are running."""
    return {
        str(row.replica)
        for row in jobs.replicas(run.name)
        if row.replica.role in roles and row.phase is ReplicaPhase.RUNNING
    }


def traceable(jobs: JobReader, name: str) -> tuple[Run, set[str]]:
    """Return a job that can be traced, and its trainers.

    Raises:
        Conflict: the job does not run, or it does not use TensorFlow.
    """
    run = jobs.get(name)
    if run.spec.framework is Framework.PYTORCH:  # Its ports are those of its ranks, which expect no profiler.
        raise Conflict(
            f"{name} trains with PyTorch, whose steps are counted and not traced",
            f"paceline why {name} says what its ranks wait for",
        )
    found = running(jobs, run, _TRAINERS)
    if run.phase is not JobPhase.RUNNING or not found:
        raise Conflict(f"{name} is {run.phase}: no trainer can take a trace", f"paceline get {name}")
    return run, found


def newest(jobs: JobReader, run: Run) -> sources.TraceReading:
    """Return the newest traces of a run.

    Raises:
        NotFound: the run has no traces.
    """
    site = jobs.trace_site(run)
    site.fetch()
    names = sources.names(site.run)
    if not names:
        raise NotFound(
            f"{run.name} has no trace",
            f"of a job that runs one is taken: paceline trace {run.name}",
        )
    return sources.read(site.run, names[-1])


def take(jobs: JobReader, name: str, *, timeout_seconds: float) -> sources.TraceReading:
    """Request a trace of a running job, and return it when all trainers have answered or the time is over.

    A trainer with a session traces its next step. If a trainer has no session, or has not answered after
    ``SESSION_SECONDS``, TensorFlow's profiler records every replica. If a trainer completed no step during
    the profile, a second, longer profile follows: the slow trainers are those that matter.

    Raises:
        Conflict: the job does not run, or no trainer has anything that can be traced.
        WaitTimeout: no trainer has answered in time.
        StoreError: the run's folder cannot be written.
        ClusterError: no trainer can be reached.
    """
    run, wanted = traceable(jobs, name)
    taking = _Taking(jobs, run, wanted, time.monotonic() + timeout_seconds)
    found = taking.attempt(PROFILE_MILLISECONDS[0])
    if taking.missing(found) and time.monotonic() < taking.deadline:
        longer = taking.attempt(PROFILE_MILLISECONDS[1], sessions_seconds=0 if found.traces else math.inf)
        found = max(longer, found, key=lambda each: len(each.traces))
    if found.traces:
        return dataclasses.replace(found, missing=tuple(sorted(taking.missing(found))))
    raise WaitTimeout(
        f"no trainer of {name} has answered within {timeout_seconds:g} s{found.why_none()}",
        f"steps may be longer than that: paceline top {name}; what is seen of a script, and what is not: "
        f"paceline describe {name}",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Taking:
    """A trace of a run that is being taken.

    Attributes:
        jobs: where the run is.
        run: the run.
        wanted: its trainers.
        deadline: on the monotonic clock.
    """

    jobs: JobReader
    run: Run
    wanted: set[str]
    deadline: float

    def attempt(self, milliseconds: int, sessions_seconds: float = 0.0) -> sources.TraceReading:
        """Return what was traced: steps of sessions, or else of a profile of this length.

        Args:
            milliseconds: the length of the profile.
            sessions_seconds: how long to wait for steps of sessions after the profile.

        Raises:
            Conflict: no trainer has anything that can be traced.
        """
        site, trace = self.jobs.trace_site(self.run), traced_steps.name_at(self.jobs.clock())
        with site.asked(trace):
            reading = self._read(
                site, trace, SESSION_SECONDS, lambda found: bool(found.refused) or self._has_all(found)
            )
            if reading.traces:  # The others are not far behind.
                return self._read(site, trace, math.inf, self._has_all)
            without_session = bool(reading.refused)
            servers = running(self.jobs, self.run, _PROFILED)
            site.profile(trace, window(self.jobs.clock(), milliseconds))
            seconds = LEAD_SECONDS + milliseconds / 1000 + PROFILE_SECONDS
            reading = self._read(site, trace, seconds, _is_any, lambda files: servers <= _profiled(files))
            if without_session and servers and servers <= reading.refused.keys():
                reason = reading.refused[min(servers)]
                raise Conflict(
                    f"{self.run.name} cannot be traced: its steps are made without a session, and {reason}"
                )
            if not reading.traces:
                reading = self._read(site, trace, sessions_seconds, self._has_all)
            silent = servers - _profiled(sources.files(site.run, trace))
            return dataclasses.replace(reading, silent=tuple(sorted(silent)))

    def missing(self, found: sources.TraceReading) -> set[str]:
        """Return the trainers that have neither left a step nor answered that they cannot."""
        return self.wanted - {each.trainer for each in found.traces} - found.refused.keys()

    def _has_all(self, found: sources.TraceReading) -> bool:
        """Return whether there are steps of all trainers."""
        return {each.trainer for each in found.traces} >= self.wanted

    def _read(
        self,
        site: TraceSite,
        trace: str,
        seconds: float,
        is_enough: Callable[[sources.TraceReading], bool],
        are_enough: Callable[[Sequence[Path]], bool] = bool,
    ) -> sources.TraceReading:
        """Return the traces that arrive, once they are enough or the time is over.

        Args:
            site: where they arrive.
            trace: the name of the trace.
            seconds: how long to wait.
            is_enough: judges the traces read.
            are_enough: judges the files before they are read, because profiles have megabytes.
        """
        until = min(self.deadline, time.monotonic() + seconds)
        files: list[Path] = []
        found = sources.read(site.run, trace)
        while True:
            site.fetch(trace)
            there = sources.files(site.run, trace)
            over = time.monotonic() >= until or self.jobs.get(self.run.name).phase.is_final
            ready = over or are_enough(there)
            if ready and there != files:
                files, found = there, sources.read(site.run, trace)
            if over or (ready and is_enough(found)):
                return found
            time.sleep(self.jobs.POLL_SECONDS)


def _is_any(found: sources.TraceReading) -> bool:
    """Accept whatever was read."""
    return True


def _profiled(files: Sequence[Path]) -> set[str]:
    """Return the replicas that have answered with a profile, or with the reason why they have none."""
    return {path.stem.rpartition(".")[0] for path in files if path.suffix == traced_steps.PROFILE}
