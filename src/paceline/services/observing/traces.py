"""Traces of a job: asked for and waited for, or the newest that is there."""

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
from paceline.services.life_cycles import LifeCycle
from paceline.services.trace_sites import TraceSite
from paceline.sources import traces as sources

Reading = sources.TraceReading
_TRAINERS = (Role.CHIEF, Role.WORKER)
#: Those that have a server of TensorFlow.
_PROFILED = (Role.PS, Role.CHIEF, Role.WORKER)
#: So long trainers may take to trace a step before their servers are profiled.
SESSION_SECONDS = 3.0
#: For so long the profiler looks, the first time and the next.
PROFILE_MILLISECONDS = (1000, 4000)
#: Within that every agent has seen what it is asked for, which it looks for once a second.
LEAD_SECONDS = 2.0
#: A server takes so long at most to write what it saw, and its agent to compress that: an agent waits 20 s.
PROFILE_SECONDS = 30.0


def window(now: float, milliseconds: int) -> traced_steps.Window:
    """Return when servers are profiled for which that is asked now (Unix seconds)."""
    return traced_steps.Window(now + LEAD_SECONDS, milliseconds)


def running(jobs: LifeCycle, run: Run, roles: Collection[Role]) -> set[str]:
    """Return the replicas of a run that have one of the roles and run now."""
    return {
        str(row.replica)
        for row in jobs.replicas(run.name)
        if row.replica.role in roles and row.phase is ReplicaPhase.RUNNING
    }


def traceable(jobs: LifeCycle, name: str) -> tuple[Run, set[str]]:
    """Return a job that can be traced, and the replicas that train.

    Raises:
        Conflict: it does not run, or its framework is another one than TensorFlow.
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


def newest(jobs: LifeCycle, run: Run) -> sources.TraceReading:
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
            f"of a job that runs one is taken: paceline trace {run.name}",
        )
    return sources.read(site.run, names[-1])


def take(jobs: LifeCycle, name: str, *, timeout_seconds: float) -> sources.TraceReading:
    """Ask for a trace of a running job and return it when all trainers have answered, or the time is over.

    A trainer with a session traces its next step. Where one has none, or has not answered after
    ``SESSION_SECONDS``, TensorFlow's profiler looks at every replica. It looks a second time, for longer,
    where a trainer made no whole step while it did: the slow ones are those that matter.

    Raises:
        Conflict: the job does not run, or no trainer has anything that can be traced.
        WaitTimeout: no trainer has answered in time.
        StoreError: the run's folder cannot be written.
        ClusterError: no trainer can be asked.
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
    """A trace of a run that is asked for.

    Attributes:
        jobs: where the run is.
        run: the run.
        wanted: its trainers.
        deadline: on the monotonic clock.
    """

    jobs: LifeCycle
    run: Run
    wanted: set[str]
    deadline: float

    def attempt(self, milliseconds: int, sessions_seconds: float = 0.0) -> sources.TraceReading:
        """Return what came: steps of sessions, or else of a profile that is so long.

        Args:
            milliseconds: of the profile.
            sessions_seconds: how long steps of sessions are waited for after it.

        Raises:
            Conflict: no trainer has anything that can be traced.
        """
        site, trace = self.jobs.trace_site(self.run), traced_steps.name_at(self.jobs.clock())
        with site.asked(trace):
            found = self._read(
                site, trace, SESSION_SECONDS, lambda found: bool(found.refused) or self._has_all(found)
            )
            if found.traces:  # The others are not far behind.
                return self._read(site, trace, math.inf, self._has_all)
            without_session = bool(found.refused)
            servers = running(self.jobs, self.run, _PROFILED)
            site.profile(trace, window(self.jobs.clock(), milliseconds))
            seconds = LEAD_SECONDS + milliseconds / 1000 + PROFILE_SECONDS
            found = self._read(site, trace, seconds, _is_any, lambda files: servers <= _profiled(files))
            if without_session and servers and servers <= found.refused.keys():
                reason = found.refused[min(servers)]
                raise Conflict(
                    f"{self.run.name} cannot be traced: its steps are made without a session, and {reason}"
                )
            if not found.traces:
                found = self._read(site, trace, sessions_seconds, self._has_all)
            silent = servers - _profiled(sources.files(site.run, trace))
            return dataclasses.replace(found, silent=tuple(sorted(silent)))

    def missing(self, found: sources.TraceReading) -> set[str]:
        """Return the trainers that have left no step, and have not said that they have none to leave."""
        return self.wanted - {each.trainer for each in found.traces} - found.refused.keys()

    def _has_all(self, found: sources.TraceReading) -> bool:
        """Whether there are steps of all trainers."""
        return {each.trainer for each in found.traces} >= self.wanted

    def _read(
        self,
        site: TraceSite,
        trace: str,
        seconds: float,
        is_enough: Callable[[sources.TraceReading], bool],
        are_enough: Callable[[Sequence[Path]], bool] = bool,
    ) -> sources.TraceReading:
        """Return what comes until it is enough, for so long at most.

        Args:
            site: where it comes.
            trace: its name.
            seconds: how long.
            is_enough: judges what was read.
            are_enough: judges the files, which are read only then: profiles have megabytes.
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
    """Whether whatever was read will do."""
    return True


def _profiled(files: Sequence[Path]) -> set[str]:
    """Return the replicas that have answered with a profile, or said why they cannot."""
    return {path.stem.rpartition(".")[0] for path in files if path.suffix == traced_steps.PROFILE}
