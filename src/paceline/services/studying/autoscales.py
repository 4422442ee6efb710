"""Moves cores within a running job, from idle replicas to those that limit its speed, guided by probes.

A job is probed and changed in rounds, at most as often as its job file allows; only a failed round is
repeated after `SETTLE_SECONDS`. Each change is recorded as an event with its reason, and in the job file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Sequence

from paceline.control.resizings import Resize
from paceline.errors import PacelineError
from paceline.model.jobs.job_specs import Autoscale
from paceline.model.jobs.runs import JobEvent, Run
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.probes import Probe
from paceline.model.measures.samples import by_replica
from paceline.model.roles import ReplicaId
from paceline.probing import balances, scopes
from paceline.probing.balances import Balance, Move
from paceline.services.life_cycles import LifeCycle
from paceline.services.studying import probes

#: The kind of the event that says what a round has changed, or why it has changed nothing.
SCALED = "autoscaled"
#: How long after the autoscaler starts, or after a failed round, a job is probed.
SETTLE_SECONDS = 120.0
#: How often the autoscaler checks whether a round is due.
LOOK_SECONDS = 5.0

log = logging.getLogger(__name__)


@dataclasses.dataclass(slots=True, kw_only=True)
class Autoscaler:
    """Autoscales the cores of one job.

    Attributes:
        jobs: where the job runs.
        name: the job.
        times: the times of a probe.
        settle_seconds: how long to wait before the first round, and after a failed round.
        gate: a context manager that is held during each round.
        failures: the number of failed rounds.
    """

    jobs: LifeCycle
    name: str
    times: probes.ProbeTimes = dataclasses.field(default_factory=probes.ProbeTimes)
    settle_seconds: float = SETTLE_SECONDS
    gate: contextlib.AbstractContextManager[object] = dataclasses.field(
        default_factory=contextlib.nullcontext
    )
    failures: int = 0

    def go(self, is_over: Callable[[], bool]) -> None:
        """Make rounds until ``is_over`` returns True, or the job has ended or is not to be autoscaled."""
        due = self.jobs.clock() + self.settle_seconds
        while not is_over():
            time.sleep(min(LOOK_SECONDS, self.settle_seconds))
            if self.jobs.clock() < due:
                continue
            try:
                run = self.jobs.get(self.name)
                if run.phase.is_final or run.spec.autoscale is None:
                    return
                if run.phase is JobPhase.RUNNING:
                    with self.gate:
                        self.round()
                due = self.jobs.clock() + run.spec.autoscale.every_seconds
            except PacelineError as error:
                self.failures += 1
                log.warning("%s is not scaled now (%d times): %s", self.name, self.failures, error.message)
                due = self.jobs.clock() + self.settle_seconds
            except Exception:  # The boundary of a loop: whatever fails in one round, the next may succeed.
                self.failures += 1
                log.exception("%s is not scaled now (%d times)", self.name, self.failures)
                due = self.jobs.clock() + self.settle_seconds

    def round(self) -> Balance:
        """Probe the job once, and move its cores accordingly; return what was changed.

        If one change is refused, those before it are put back.

        Raises:
            Conflict: the job does not run, is being changed, or cannot be probed or resized.
            EngineError: the engine refuses a change.
        """
        probe = probes.Prober(jobs=self.jobs, times=self.times).probe(self.name)
        run = self.jobs.get(self.name)
        balance = decided(self.jobs, run, probe)
        made: list[Move] = []
        try:
            for move in balance.moves:
                self._resize(move.replica, move.after)
                made.append(move)
        except PacelineError as error:
            stay = self._put_back(made)
            lead = f"{_said(stay)}; no more was changed" if stay else "nothing was changed"
            self._note(f"{lead}: {error.message}")
            raise
        self._note(_said(balance.moves) or f"nothing was changed: {balance.why}")
        return balance

    def _put_back(self, made: Sequence[Move]) -> list[Move]:
        """Undo moves, as all of a round are made or none; return those that cannot be undone."""
        stay = []
        for move in reversed(made):
            try:
                self._resize(move.replica, move.before)
            except PacelineError as error:
                log.warning("%s: %s is not put back: %s", self.name, move.replica, error.message)
                stay.append(move)
        return stay

    def _resize(self, replica: ReplicaId, cores: float) -> None:
        self.jobs.resize(self.name, Resize(target=str(replica), cpu_cores=cores))

    def _note(self, message: str) -> None:
        self.jobs.note(self.name, JobEvent(at=self.jobs.clock(), kind=SCALED, message=message))


def _said(moves: Sequence[Move]) -> str:
    return "; ".join(move.text for move in moves)


def decided(jobs: LifeCycle, run: Run, probe: Probe, scale: Autoscale | None = None) -> Balance:
    """Return what autoscaling would change in a job after a probe, without changing it.

    Args:
        jobs: where the job runs.
        run: the job.
        probe: the probe.
        scale: the limits of autoscaling; None: those of the job file.
    """
    wanted = scale or run.spec.autoscale
    if wanted is None:
        return Balance(moves=(), why="its job file does not ask for it (spec.autoscale)")
    return balances.balance(run.spec, wanted, probe.elasticities, _used(jobs, run, probe.began_at))


def _used(jobs: LifeCycle, run: Run, before: float) -> dict[ReplicaId, float]:
    """Return the cores that replicas used before a probe."""
    recording = jobs.recording(run.name, since=before - probes.HISTORY_SECONDS)
    samples = by_replica([each for each in recording.samples if each.at <= before])
    seen = {replica: scopes.last_seen(own)[1] for replica, own in samples.items()}
    return {replica: used for replica, used in seen.items() if used is not None}
