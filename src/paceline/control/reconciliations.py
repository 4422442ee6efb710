"""The state machine driven by reconciliation: the state is compared with what exists, as often as needed.

A supervisor receives events and executes commands. A Kubernetes operator may be replaced between any two of
its steps, so it observes instead: events follow from the pods it sees, and commands follow from the state and
the pods. Nothing is lost with the process, and the next reconciliation finishes what was left half done. The
order is the same as for a supervisor: the progress is saved, then commands are executed.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Collection, Iterator, Mapping, Sequence

from paceline.control import commands, events, machines, states
from paceline.control.commands import Command
from paceline.model.jobs.statuses import ExitKind, ExitReason, JobPhase, ReplicaPhase
from paceline.model.roles import ReplicaId


class Stage(enum.StrEnum):
    """The stage of an attempt that has a pod."""

    COMING = "coming"
    RUNNING = "running"
    ENDED = "ended"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    """An attempt that has a pod.

    Attributes:
        reason: why it ended; None: it has not ended, or the reason is not known.
        is_lasting: whether the next attempt is certain to end for the same reason.
        is_leaving: whether it was asked to end.
    """

    replica: ReplicaId
    attempt: int
    stage: Stage
    reason: ExitReason | None = None
    is_lasting: bool = False
    is_leaving: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileProgress:
    """All that has to be stored between two reconciliations; timers have due times in Unix seconds."""

    state: states.JobState
    timers: Mapping[events.Timer, float] = dataclasses.field(default_factory=dict)

    @property
    def next_due(self) -> float | None:
        """The time at which the next timer is due."""
        return min(self.timers.values(), default=None)


def reconcile(
    progress: ReconcileProgress, seen: Collection[PodState], now: float, requests: Sequence[events.Event] = ()
) -> tuple[ReconcileProgress, list[Command]]:
    """Return the new progress, and the commands to execute once it is saved.

    Args:
        progress: the stored progress.
        seen: every attempt of the job that has a pod, including ended ones until they are removed.
        now: Unix seconds.
        requests: the requests of users, such as to begin, stop or resume.
    """
    state, timers = progress.state, dict(progress.timers)
    kills: list[commands.Kill] = []
    for event in [*_seen(state, seen), *_due(timers, now), *requests, *_released(state, seen)]:
        state, wanted = machines.advance(state, event)
        for command in wanted:
            if isinstance(command, commands.StartTimer):
                timers[command.timer] = now + command.seconds
            elif isinstance(command, commands.Kill):
                kills.append(command)  # if the command is lost, its timer fires again
    kept = {timer: due for timer, due in timers.items() if not _is_stale(state, timer)}
    killed = {(kill.replica, kill.attempt) for kill in kills}
    left = [pod for pod in seen if (pod.replica, pod.attempt) not in killed]
    return ReconcileProgress(state=state, timers=kept), [*kills, *_missing(state, seen, left)]


def _seen(state: states.JobState, seen: Collection[PodState]) -> Iterator[events.Event]:
    """Yield the events of the current attempts."""
    found = {(pod.replica, pod.attempt): pod for pod in seen}
    for replica in state.replicas:
        if not replica.phase.is_live:
            continue
        key = replica.replica, replica.attempt
        pod = found.get(key)
        if pod is None and replica.phase is not ReplicaPhase.STARTING:
            yield _exited(key, _gone(replica.phase))
        elif pod is None and state.phase is JobPhase.STOPPING:
            yield _exited(key, machines.NOT_LAUNCHED)
        elif pod is not None and pod.stage is Stage.ENDED:
            yield _exited(key, pod.reason or _gone(replica.phase), is_lasting=pod.is_lasting)
        elif pod is not None and pod.stage is Stage.RUNNING:
            yield events.ReplicaStarted(replica=pod.replica, attempt=pod.attempt)


def _exited(key: tuple[ReplicaId, int], reason: ExitReason, *, is_lasting: bool = False) -> events.Event:
    return events.ReplicaExited(replica=key[0], attempt=key[1], reason=reason, is_lasting=is_lasting)


def _gone(phase: ReplicaPhase) -> ExitReason:
    if phase is ReplicaPhase.STOPPING:
        return ExitReason(kind=ExitKind.SIGNAL, signal=15, message="ended on request")
    return ExitReason(kind=ExitKind.LOST, message="removed, and not by Paceline")


def _due(timers: dict[events.Timer, float], now: float) -> list[events.Event]:
    """Remove the timers that have run out, and return their events in the order of their due times."""
    due = sorted((timer for timer in timers if timers[timer] <= now), key=timers.__getitem__)
    for timer in due:
        del timers[timer]
    return [events.TimerFired(timer=timer) for timer in due]


def _released(state: states.JobState, seen: Collection[PodState]) -> list[events.Event]:
    ended = all(replica.phase.is_final for replica in state.replicas)
    nothing_runs = all(pod.stage is Stage.ENDED for pod in seen)
    return [events.Released()] if state.phase is JobPhase.STOPPING and ended and nothing_runs else []


def _is_stale(state: states.JobState, timer: events.Timer) -> bool:
    """Whether a timer has no effect any more; if stale timers were kept, each attempt would add one."""
    if state.phase.is_final:
        return True
    if timer.replica is None:
        return False
    replica = state.replica(timer.replica)
    return replica is None or replica.attempt != timer.attempt


def _missing(
    state: states.JobState, seen: Collection[PodState], left: Collection[PodState]
) -> Iterator[Command]:
    """Yield the commands that bring pods in line with the state; ``left`` are those not killed already."""
    alive = {(pod.replica, pod.attempt): pod for pod in left if pod.stage is not Stage.ENDED}
    known = {(pod.replica, pod.attempt) for pod in seen}
    for replica in state.replicas:
        own, key = replica.replica, (replica.replica, replica.attempt)
        old = [attempt for each, attempt in alive if each == own and attempt != replica.attempt]
        yield from (commands.Kill(replica=own, attempt=attempt) for attempt in old)
        is_due = replica.phase is ReplicaPhase.STARTING and state.phase is not JobPhase.STOPPING
        if is_due and key not in known and not old:
            yield commands.Launch(replica=own, attempt=replica.attempt, memory_bytes=replica.memory_bytes)
        elif key in alive and not alive[key].is_leaving and not replica.phase.is_live:
            yield commands.Kill(replica=own, attempt=replica.attempt)
        elif key in alive and not alive[key].is_leaving and replica.phase is ReplicaPhase.STOPPING:
            yield commands.Terminate(replica=own, attempt=replica.attempt)
