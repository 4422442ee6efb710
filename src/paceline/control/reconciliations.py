"""The state machine driven by looking: what there is, against what the state says, as often as one likes.

A supervisor hears of events and executes commands. Who may be replaced between any two of its steps, as an
operator on Kubernetes, looks instead: events follow from what is seen, and what is to be done follows from
the state and what is seen. So nothing is lost with the process, and whatever was half done is done by the
next look. The order is the same: the progress is saved, then commands are executed.
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
    """How far an attempt that can be seen has come."""

    COMING = "coming"
    RUNNING = "running"
    ENDED = "ended"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    """An attempt that can be seen.

    Attributes:
        reason: why it ended, if it has.
        is_lasting: whether that is sure to be there the next time, too.
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
    """All that has to be kept between two looks; timers are due at Unix seconds."""

    state: states.JobState
    timers: Mapping[events.Timer, float] = dataclasses.field(default_factory=dict)

    @property
    def next_due(self) -> float | None:
        """When the next timer is due."""
        return min(self.timers.values(), default=None)


def reconcile(
    progress: ReconcileProgress, seen: Collection[PodState], now: float, requests: Sequence[events.Event] = ()
) -> tuple[ReconcileProgress, list[Command]]:
    """Return the progress that follows from a look, and what is to be done once it is saved.

    Args:
        progress: what was kept.
        seen: every attempt of the job that there is, ended ones too until they are removed.
        now: Unix seconds.
        requests: what users want: to begin, stop or resume.
    """
    state, timers = progress.state, dict(progress.timers)
    kills: list[commands.Kill] = []
    for event in [*_seen(state, seen), *_due(timers, now), *requests, *_released(state, seen)]:
        state, wanted = machines.advance(state, event)
        for command in wanted:
            if isinstance(command, commands.StartTimer):
                timers[command.timer] = now + command.seconds
            elif isinstance(command, commands.Kill):
                kills.append(command)  # if it is lost, its timer fires again
    kept = {timer: due for timer, due in timers.items() if not _is_stale(state, timer)}
    killed = {(kill.replica, kill.attempt) for kill in kills}
    left = [sight for sight in seen if (sight.replica, sight.attempt) not in killed]
    return ReconcileProgress(state=state, timers=kept), [*kills, *_missing(state, seen, left)]


def _seen(state: states.JobState, seen: Collection[PodState]) -> Iterator[events.Event]:
    """Yield what has happened to the current attempts."""
    found = {(sight.replica, sight.attempt): sight for sight in seen}
    for replica in state.replicas:
        if not replica.phase.is_live:
            continue
        key = replica.replica, replica.attempt
        sight = found.get(key)
        if sight is None and replica.phase is not ReplicaPhase.STARTING:
            yield _exited(key, _gone(replica.phase))
        elif sight is None and state.phase is JobPhase.STOPPING:
            yield _exited(key, machines.NOT_LAUNCHED)
        elif sight is not None and sight.stage is Stage.ENDED:
            yield _exited(key, sight.reason or _gone(replica.phase), is_lasting=sight.is_lasting)
        elif sight is not None and sight.stage is Stage.RUNNING:
            yield events.ReplicaStarted(replica=sight.replica, attempt=sight.attempt)


def _exited(key: tuple[ReplicaId, int], reason: ExitReason, *, is_lasting: bool = False) -> events.Event:
    return events.ReplicaExited(replica=key[0], attempt=key[1], reason=reason, is_lasting=is_lasting)


def _gone(phase: ReplicaPhase) -> ExitReason:
    if phase is ReplicaPhase.STOPPING:
        return ExitReason(kind=ExitKind.SIGNAL, signal=15, message="ended on request")
    return ExitReason(kind=ExitKind.LOST, message="removed, and not by Paceline")


def _due(timers: dict[events.Timer, float], now: float) -> list[events.Event]:
    """Take the timers that have run out, in their order."""
    due = sorted((timer for timer in timers if timers[timer] <= now), key=timers.__getitem__)
    for timer in due:
        del timers[timer]
    return [events.TimerFired(timer=timer) for timer in due]


def _released(state: states.JobState, seen: Collection[PodState]) -> list[events.Event]:
    ended = all(replica.phase.is_final for replica in state.replicas)
    nothing_runs = all(sight.stage is Stage.ENDED for sight in seen)
    return [events.Released()] if state.phase is JobPhase.STOPPING and ended and nothing_runs else []


def _is_stale(state: states.JobState, timer: events.Timer) -> bool:
    """Whether a timer can mean nothing any more; kept, they would grow with every attempt."""
    if state.phase.is_final:
        return True
    if timer.replica is None:
        return False
    replica = state.replica(timer.replica)
    return replica is None or replica.attempt != timer.attempt


def _missing(
    state: states.JobState, seen: Collection[PodState], left: Collection[PodState]
) -> Iterator[Command]:
    """Yield what makes the world as the state has it; ``left`` are those that are not killed anyway."""
    alive = {(sight.replica, sight.attempt): sight for sight in left if sight.stage is not Stage.ENDED}
    known = {(sight.replica, sight.attempt) for sight in seen}
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
