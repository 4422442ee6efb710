"""The transitions of a job's life.

::

    pending -> starting -> running <-> restarting
                  |           |            |
                  +-----------+------------+--> stopping -> succeeded | failed | stopped
                                                               (failed, stopped -> pending: resumed)
                                                               (running -> starting: more workers)

``stopping`` begins when the outcome is decided: the success policy is met, a replica that the job needs has
failed for good, the deadline passed, or a caller asked. First all replicas except the parameter servers are
asked to end, so that a chief can save what the parameter servers hold. When the last of these replicas has
ended, or was killed after its grace period, the parameter servers are asked to end, with a grace period of
their own. Replicas that were asked to end are in the phase ``stopping``; a new supervisor needs no more than
that. The job ends when nothing of it is left. An event that does not fit the state (stale, repeated, late)
changes nothing.

The phases of a replica, in which "ended" stands for ``succeeded``, ``failed`` and ``stopped``::

    pending -> starting -> running
    starting, running -> succeeded | failed        (it ended for good)
    starting, running -> backing-off -> starting   (it ended, and its role's policy restarts it)
    starting, running -> stopping                  (it was asked to end)
    starting, running -> succeeded | stopped       (a parameter server ended before it was asked to,
                                                    while the job stops)
    stopping -> succeeded | stopped                (it ended with the job)
    stopping -> stopped                            (a removed worker ended)
    stopping -> starting                           (a removed worker ended, and is wanted again)
    pending, backing-off -> stopped                (the job stops, or this worker is removed)
    ended -> pending                               (the job was resumed)
    ended -> pending | starting                    (a removed worker was added again, before | after
                                                    the job began)

A worker that is added to a job that has begun, and that the job never had, is ``starting`` at once.
"""

from __future__ import annotations

import dataclasses

from paceline.control import commands, events, resizings, scalings
from paceline.control.commands import Command
from paceline.control.events import TimerKind
from paceline.control.states import JobState, ReplicaState, initial
from paceline.model import backoffs, roles
from paceline.model.jobs import adjustments, job_specs
from paceline.model.jobs.statuses import ExitKind, ExitReason, JobPhase, ReplicaPhase
from paceline.model.roles import Role

#: A restart waits ``backoff_seconds * 2**restarts``, at most this long.
MAX_BACKOFF_SECONDS = 60.0
#: The engine kills a replica by force this long after the grace period of its agent.
KILL_SLACK_SECONDS = 5.0
#: How long a job may go on after a parameter server has ended by itself. Scripts let a PS end when the
#: workers report that they are done, and a chief may still export then; a trainer that still trains waits
#: for ever.
UNSERVED_SECONDS = 600.0
#: The exit reason of a replica whose launch was due when its job began to stop.
NOT_LAUNCHED = ExitReason(kind=ExitKind.LAUNCH_FAILED, message="not launched: the job is ending")

Transition = tuple[JobState, list[Command]]


def advance(state: JobState, event: events.Event) -> Transition:
    """Return the state after an event, and the commands to execute now."""
    match event:
        case events.Begin():
            return _begin(state) if state.phase is JobPhase.PENDING else (state, [])
        case events.ReplicaStarted(replica=replica, attempt=attempt):
            return _started(state, replica, attempt)
        case events.ReplicaExited():
            return _exited(state, event)
        case events.TimerFired(timer=timer):
            return _timer_fired(state, timer)
        case events.StopRequested(reason=reason):
            return _stop(state, JobPhase.STOPPED, reason)
        case events.ScaleRequested(workers=workers):
            return _scale(state, workers)
        case events.ResizeRequested() | events.AdjustRequested() | events.TimePassed():
            return _sized(state, event), []
        case events.EngineFailed(reason=reason):
            return _stop(state, JobPhase.FAILED, reason)
        case events.ResumeRequested(spec=spec):
            return _resume(state, spec)
        case events.SupervisorReplaced():
            return _replaced(state, event)
        case events.Released():
            return _released(state)


def _begin(state: JobState) -> Transition:
    issued: list[Command] = []
    launched = []
    for replica in state.replicas:
        if state.spec.has(replica.replica):
            replica, command = _launch(replica)
            issued.append(command)
        launched.append(replica)
    if state.spec.active_deadline_seconds is not None:
        issued.append(_deadline_timer(state.spec.active_deadline_seconds))
    return dataclasses.replace(state, phase=JobPhase.STARTING, replicas=tuple(launched)), issued


def _launch(replica: ReplicaState) -> tuple[ReplicaState, Command]:
    started = dataclasses.replace(replica, phase=ReplicaPhase.STARTING, attempt=replica.attempt + 1)
    return started, commands.Launch(
        replica=started.replica, attempt=started.attempt, memory_bytes=started.memory_bytes
    )


def _deadline_timer(seconds: float) -> Command:
    return commands.StartTimer(timer=events.Timer(kind=TimerKind.DEADLINE), seconds=max(0.0, seconds))


def _started(state: JobState, replica: roles.ReplicaId, attempt: int) -> Transition:
    current = state.replica(replica)
    if current is None or current.attempt != attempt or current.phase is not ReplicaPhase.STARTING:
        return state, []
    return _settle(_put(state, dataclasses.replace(current, phase=ReplicaPhase.RUNNING))), []


def _settle(state: JobState) -> JobState:
    """Return the state, with the job as running if none of its replicas is yet to start."""
    waiting = (ReplicaPhase.PENDING, ReplicaPhase.STARTING, ReplicaPhase.BACKING_OFF)
    if state.phase in (JobPhase.STARTING, JobPhase.RESTARTING) and not any(
        r.phase in waiting or (r.phase is ReplicaPhase.STOPPING and state.spec.has(r.replica))
        for r in state.replicas
    ):
        return dataclasses.replace(state, phase=JobPhase.RUNNING, message="")
    return state


def _put(state: JobState, replica: ReplicaState) -> JobState:
    return dataclasses.replace(
        state, replicas=tuple(replica if r.replica == replica.replica else r for r in state.replicas)
    )


def _exited(state: JobState, event: events.ReplicaExited) -> Transition:
    replica, reason = event.replica, event.reason
    current = state.replica(replica)
    if current is None or current.attempt != event.attempt or not current.phase.is_live:
        return state, []
    current = dataclasses.replace(current, exit=reason)
    completed = reason.kind is ExitKind.COMPLETED
    if state.phase is JobPhase.STOPPING:
        phase = ReplicaPhase.SUCCEEDED if completed else ReplicaPhase.STOPPED
        return _wind_up(_put(state, dataclasses.replace(current, phase=phase)))
    if current.phase is ReplicaPhase.STOPPING:
        return _left(state, current)
    spec = state.spec.role(replica.role)
    assert spec is not None, "every replica's role is in the spec"
    if not event.is_lasting and _restarts(spec.restart, current, reason):
        return _back_off(state, spec, current)
    if completed:
        state = _settle(_put(state, dataclasses.replace(current, phase=ReplicaPhase.SUCCEEDED)))
        if _succeeded(state):
            return _stop(state, JobPhase.SUCCEEDED, "")
        return state, [_unserved_timer(current)] if replica.role is Role.PS else []
    state = _put(state, dataclasses.replace(current, phase=ReplicaPhase.FAILED))
    if _needed(state.spec, replica):
        why = "; it would fail again, so it was not restarted" if event.is_lasting else _after(current)
        return _stop(state, JobPhase.FAILED, f"{replica} failed: {reason}{why}")
    return _settle(state), []


def _unserved_timer(server: ReplicaState) -> Command:
    """Return the timer that fails the job some time after a parameter server has ended by itself."""
    timer = events.Timer(kind=TimerKind.UNSERVED, replica=server.replica, attempt=server.attempt)
    return commands.StartTimer(timer=timer, seconds=UNSERVED_SECONDS)


def _after(replica: ReplicaState) -> str:
    return f" (after {replica.restarts} restarts)" if replica.restarts else ""


def _restarts(policy: job_specs.RestartPolicy, replica: ReplicaState, reason: ExitReason) -> bool:
    if reason.kind is ExitKind.DISRUPTED:
        return policy.when is not job_specs.RestartWhen.NEVER  # not its fault, so no limit applies
    if replica.restarts >= policy.limit or reason.is_never_started:
        return False
    if reason.kind is ExitKind.COMPLETED:
        return policy.when is job_specs.RestartWhen.ALWAYS
    return policy.when is not job_specs.RestartWhen.NEVER


def _back_off(state: JobState, spec: job_specs.RoleSpec, replica: ReplicaState) -> Transition:
    assert replica.exit is not None, "a replica backs off because it ended"
    seconds = backoffs.doubled(spec.restart.backoff_seconds, replica.restarts, MAX_BACKOFF_SECONDS)
    memory_bytes = replica.memory_bytes
    if replica.exit.kind is ExitKind.OUT_OF_MEMORY:
        memory_bytes = grown_memory(spec.memory_growth, memory_bytes)
    counts = replica.exit.kind is not ExitKind.DISRUPTED
    restarts = replica.restarts + (1 if counts else 0)
    waiting = dataclasses.replace(
        replica, phase=ReplicaPhase.BACKING_OFF, restarts=restarts, memory_bytes=memory_bytes
    )
    nth = f"restart {restarts} of {spec.restart.limit}" if counts else "it comes back, which does not count"
    message = f"{replica.replica} ended ({replica.exit}); {nth}"
    state = dataclasses.replace(_put(state, waiting), phase=JobPhase.RESTARTING, message=message)
    timer = events.Timer(kind=TimerKind.BACKOFF, replica=replica.replica, attempt=replica.attempt)
    return state, [commands.StartTimer(timer=timer, seconds=seconds)]


def grown_memory(growth: job_specs.MemoryGrowth | None, memory_bytes: int | None) -> int | None:
    """Return the memory limit after an out-of-memory kill; it never shrinks."""
    if growth is None or memory_bytes is None:
        return memory_bytes
    wanted = int(memory_bytes * growth.factor)
    return max(memory_bytes, wanted if growth.cap_bytes is None else min(wanted, growth.cap_bytes))


def _deciders(spec: job_specs.JobSpec) -> tuple[roles.ReplicaId, ...]:
    """Return the replicas whose completion makes the job a success."""
    if spec.success is job_specs.SuccessPolicy.CHIEF:
        return (roles.ReplicaId(Role.CHIEF if spec.role(Role.CHIEF) else Role.WORKER, 0),)
    return tuple(replica for replica in spec.replicas() if replica.role.trains)


def _succeeded(state: JobState) -> bool:
    deciders = _deciders(state.spec)
    return all(r.phase is ReplicaPhase.SUCCEEDED for r in state.replicas if r.replica in deciders)


def _needed(spec: job_specs.JobSpec, replica: roles.ReplicaId) -> bool:
    """Whether the job cannot go on without this replica: PS hold variables, the others decide success."""
    return replica.role is Role.PS or replica in _deciders(spec)


def _scale(state: JobState, workers: int) -> Transition:
    """Launch the new workers, or ask the workers beyond the number, those with the highest indices, to end.

    Workers that were asked to end count neither for nor against the job's success, and are not restarted.
    """
    before, spec = state.spec, state.spec.with_workers(workers)
    if (
        state.phase is JobPhase.STOPPING
        or state.phase.is_final
        or scalings.conflict(before, workers) is not None
        or len(spec.replicas()) == len(before.replicas())
    ):
        return state, []
    issued: list[Command] = []
    replica_states = {replica.replica: replica for replica in state.replicas}
    scaled = []
    for fresh in initial(spec).replicas:
        replica = replica_states.pop(fresh.replica, fresh)
        if not before.has(replica.replica) and replica.phase is not ReplicaPhase.STOPPING:
            replica = dataclasses.replace(fresh, attempt=replica.attempt)
            if state.phase is not JobPhase.PENDING:
                replica, command = _launch(replica)
                issued.append(command)
        scaled.append(replica)
    for replica in replica_states.values():
        if replica.phase.is_live and replica.phase is not ReplicaPhase.STOPPING:
            issued.extend(_terminate(spec, replica))
            replica = dataclasses.replace(replica, phase=ReplicaPhase.STOPPING)
        elif not replica.phase.is_live and not replica.phase.is_final:
            replica = dataclasses.replace(replica, phase=ReplicaPhase.STOPPED)
        scaled.append(replica)
    phase = JobPhase.STARTING if state.phase is JobPhase.RUNNING else state.phase
    message = f"scaled to {workers} workers" if state.phase is JobPhase.RUNNING else state.message
    state = _settle(
        dataclasses.replace(state, spec=spec, replicas=tuple(scaled), phase=phase, message=message)
    )
    if state.phase is not JobPhase.PENDING and _succeeded(state):
        state, more = _stop(state, JobPhase.SUCCEEDED, "")
        issued.extend(more)
    return state, issued


def _sized(
    state: JobState, event: events.ResizeRequested | events.AdjustRequested | events.TimePassed
) -> JobState:
    """Return a job whose replicas have other limits, for good or for a limited time."""
    if state.phase is JobPhase.STOPPING or state.phase.is_final:
        return state
    match event:
        case events.ResizeRequested(spec=spec):
            return _resized(state, spec)
        case events.AdjustRequested(adjustments=new):
            found = adjustments.merged(state.adjustments, new)
        case events.TimePassed(now=now):
            found = adjustments.current(state.adjustments, now)
    return dataclasses.replace(state, adjustments=found)


def _resized(state: JobState, wanted: job_specs.JobSpec) -> JobState:
    """Set the limits of replicas for good; current adjustments stay until they end."""
    spec = resizings.taken_over(state.spec, wanted)
    replicas = tuple(
        dataclasses.replace(each, memory_bytes=spec.role_of(each.replica).memory_bytes)
        if state.spec.has(each.replica) and resizings.has_other_memory(state.spec, spec, each.replica)
        else each
        for each in state.replicas
    )
    return dataclasses.replace(state, spec=spec, replicas=replicas)


def _left(state: JobState, replica: ReplicaState) -> Transition:
    """Record that a worker has ended on request; launch it again if it is wanted again meanwhile."""
    if state.spec.has(replica.replica):
        replica, command = _launch(dataclasses.replace(replica, restarts=0))
        return _put(state, replica), [command]
    return _put(state, dataclasses.replace(replica, phase=ReplicaPhase.STOPPED)), []


def _stop(state: JobState, outcome: JobPhase, message: str) -> Transition:
    if state.phase is JobPhase.STOPPING or state.phase.is_final:
        return state, []
    replicas = tuple(
        r if r.phase.is_live or r.phase.is_final else dataclasses.replace(r, phase=ReplicaPhase.STOPPED)
        for r in state.replicas
    )
    return _wind_up(
        dataclasses.replace(
            # A paused replica could not end, and a replica short of cores would take for ever to save.
            state,
            phase=JobPhase.STOPPING,
            replicas=replicas,
            outcome=outcome,
            message=message,
            adjustments=(),
        )
    )


def _wind_up(state: JobState) -> Transition:
    """Ask the replicas whose turn it is to end, and release the job when none is live.

    Parameter servers hold what a chief saves at its end, so they are asked after all others have ended.
    """
    live = [replica for replica in state.replicas if replica.phase.is_live]
    if not live:
        return state, [commands.Release()]
    issued: list[Command] = []
    for replica in [each for each in live if each.replica.role is not Role.PS] or live:
        if replica.phase is not ReplicaPhase.STOPPING:
            issued.extend(_terminate(state.spec, replica))
            state = _put(state, dataclasses.replace(replica, phase=ReplicaPhase.STOPPING))
    return state, issued


def _terminate(spec: job_specs.JobSpec, replica: ReplicaState) -> list[Command]:
    timer = events.Timer(kind=TimerKind.KILL, replica=replica.replica, attempt=replica.attempt)
    seconds = spec.termination_grace_seconds + KILL_SLACK_SECONDS
    return [
        commands.Terminate(replica=replica.replica, attempt=replica.attempt),
        commands.StartTimer(timer=timer, seconds=seconds),
    ]


def _released(state: JobState) -> Transition:
    if state.phase is not JobPhase.STOPPING or not all(r.phase.is_final for r in state.replicas):
        return state, []
    assert state.outcome is not None, "stopping means that the outcome is decided"
    return dataclasses.replace(state, phase=state.outcome), []


def _timer_fired(state: JobState, timer: events.Timer) -> Transition:
    if timer.kind is TimerKind.DEADLINE:
        seconds = state.spec.active_deadline_seconds
        if state.phase is JobPhase.PENDING or seconds is None:
            return state, []
        return _stop(state, JobPhase.FAILED, f"the active deadline of {seconds:g} s passed")
    replica = state.replica(timer.replica) if timer.replica else None
    if replica is None or replica.attempt != timer.attempt:
        return state, []
    if timer.kind is TimerKind.BACKOFF and replica.phase is ReplicaPhase.BACKING_OFF:
        replica, command = _launch(replica)
        return _put(state, replica), [command]
    if timer.kind is TimerKind.UNSERVED and replica.phase is ReplicaPhase.SUCCEEDED:
        ended = (
            f"{timer.replica} ended by itself, {UNSERVED_SECONDS / 60:.0f} minutes before the job was done"
        )
        return _stop(state, JobPhase.FAILED, f"{ended}: its variables are gone, and trainers wait for it")
    if timer.kind is TimerKind.KILL and replica.phase is ReplicaPhase.STOPPING:
        kill = commands.Kill(replica=replica.replica, attempt=replica.attempt)
        return state, [kill, commands.StartTimer(timer=timer, seconds=KILL_SLACK_SECONDS)]
    return state, []


def _resume(state: JobState, spec: job_specs.JobSpec | None) -> Transition:
    if state.phase not in (JobPhase.FAILED, JobPhase.STOPPED):
        return state, []
    if spec is not None:
        state = _relaid(state, spec)
    fresh = tuple(
        dataclasses.replace(
            r, phase=ReplicaPhase.PENDING if state.spec.has(r.replica) else r.phase, restarts=0
        )
        for r in state.replicas
    )
    pending = dataclasses.replace(state, phase=JobPhase.PENDING, replicas=fresh, outcome=None, message="")
    return pending, []


def _relaid(state: JobState, spec: job_specs.JobSpec) -> JobState:
    """Return the state of an ended job with another spec; all replicas it ever had keep their attempts.

    Each attempt has files of its own, so a replica that comes back must not reuse the number of an attempt.
    """
    known = {each.replica: each for each in state.replicas}
    wanted = initial(spec).replicas
    kept = tuple(
        dataclasses.replace(known.get(each.replica, each), memory_bytes=each.memory_bytes) for each in wanted
    )
    others = tuple(each for each in state.replicas if not spec.has(each.replica))
    return dataclasses.replace(state, spec=spec, replicas=(*kept, *others))


def _replaced(state: JobState, event: events.SupervisorReplaced) -> Transition:
    if state.phase.is_final or state.phase is JobPhase.PENDING:
        return state, []
    issued: list[Command] = []
    ending = state.phase is JobPhase.STOPPING
    if state.spec.active_deadline_seconds is not None and not ending:
        issued.append(_deadline_timer(state.spec.active_deadline_seconds - event.active_seconds))
    for replica in state.replicas:
        lives = event.live.get(replica.replica) == replica.attempt
        if replica.phase is ReplicaPhase.BACKING_OFF:
            timer = events.Timer(kind=TimerKind.BACKOFF, replica=replica.replica, attempt=replica.attempt)
            issued.append(commands.StartTimer(timer=timer, seconds=0.0))
        elif replica.phase is ReplicaPhase.SUCCEEDED and replica.replica.role is Role.PS and not ending:
            issued.append(_unserved_timer(replica))
        elif replica.phase is ReplicaPhase.STOPPING and lives:
            issued.extend(_terminate(state.spec, replica))
        elif replica.phase is ReplicaPhase.STARTING and lives:
            # The old supervisor may have received the start of the replica without saving it.
            state = _put(state, dataclasses.replace(replica, phase=ReplicaPhase.RUNNING))
    for replica in state.replicas:
        if replica.phase.is_live and event.live.get(replica.replica) != replica.attempt:
            reason = event.exits.get(replica.replica) or ExitReason(
                kind=ExitKind.LOST, message="it was gone when a new supervisor took over"
            )
            exited = events.ReplicaExited(replica=replica.replica, attempt=replica.attempt, reason=reason)
            state, more = _exited(state, exited)
            issued.extend(more)
    # If the last live replica was gone, `_exited` has released the job already.
    if state.phase is JobPhase.STOPPING and not any(isinstance(c, commands.Release) for c in issued):
        state, more = _wind_up(state)
        issued.extend(more)
    return _settle(state), issued
