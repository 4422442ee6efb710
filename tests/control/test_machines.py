"""The life of a job, one transition at a time."""

from __future__ import annotations

import dataclasses

import pytest

from paceline.control import commands, events, machines, states
from paceline.control.events import Timer, TimerKind
from paceline.model.jobs.job_specs import (
    JobSpec,
    MemoryGrowth,
    RestartPolicy,
    RestartWhen,
    RoleSpec,
    SuccessPolicy,
)
from paceline.model.jobs.statuses import ExitKind, ExitReason, JobPhase, ReplicaPhase
from paceline.model.roles import ReplicaId, Role

PS0, PS1 = ReplicaId(Role.PS, 0), ReplicaId(Role.PS, 1)
W0, W1 = ReplicaId(Role.WORKER, 0), ReplicaId(Role.WORKER, 1)
CHIEF, EVALUATOR = ReplicaId(Role.CHIEF, 0), ReplicaId(Role.EVALUATOR, 0)
DONE = ExitReason(kind=ExitKind.COMPLETED, code=0)
FAILED = ExitReason(kind=ExitKind.ERROR, code=1)
OUT_OF_MEMORY = ExitReason(kind=ExitKind.OUT_OF_MEMORY, signal=9)


def job(*, success: SuccessPolicy = SuccessPolicy.ALL_WORKERS, limit: int = 2, **replicas: int) -> JobSpec:
    counts = replicas or {"ps": 2, "worker": 2}
    return JobSpec(
        name="job",
        command=("train",),
        success=success,
        roles=tuple(
            RoleSpec(role=Role(role), replicas=count, restart=RestartPolicy(limit=limit))
            for role, count in counts.items()
        ),
    )


def drive(spec: JobSpec, *happened: events.Event) -> tuple[states.JobState, list[commands.Command]]:
    """Return the state after these events, and the commands of the last one."""
    state, wanted = states.initial(spec), []
    for event in happened:
        state, wanted = machines.advance(state, event)
        assert states.broken_invariants(state) == []
    return state, wanted


def started(*replicas: ReplicaId, attempt: int = 1) -> list[events.Event]:
    return [events.ReplicaStarted(replica=replica, attempt=attempt) for replica in replicas]


def exited(replica: ReplicaId, reason: ExitReason = DONE, attempt: int = 1) -> events.Event:
    return events.ReplicaExited(replica=replica, attempt=attempt, reason=reason)


def asked(wanted: list[commands.Command]) -> list[ReplicaId]:
    """Return who is asked to end, each with a timer of the whole grace that it has from now on."""
    replicas = [c.replica for c in wanted if isinstance(c, commands.Terminate)]
    kills = {c.timer.replica: c.seconds for c in wanted if isinstance(c, commands.StartTimer)}
    assert all(kills[replica] == 30.0 + machines.KILL_SLACK_SECONDS for replica in replicas)
    return replicas


RUNNING = (events.Begin(), *started(PS0, PS1, W0, W1))


def test_all_replicas_are_launched_at_once() -> None:
    state, wanted = drive(job(), events.Begin())
    assert state.phase is JobPhase.STARTING
    assert [c.replica for c in wanted if isinstance(c, commands.Launch)] == [PS0, PS1, W0, W1]


def test_the_job_runs_when_the_last_replica_does() -> None:
    assert drive(job(), *RUNNING[:-1])[0].phase is JobPhase.STARTING
    assert drive(job(), *RUNNING)[0].phase is JobPhase.RUNNING


def test_ps_are_terminated_when_all_workers_have_completed() -> None:
    state, wanted = drive(job(), *RUNNING, exited(W0), exited(W1))
    assert (state.phase, state.outcome) == (JobPhase.STOPPING, JobPhase.SUCCEEDED)
    assert asked(wanted) == [PS0, PS1]


def test_the_job_has_succeeded_only_when_everything_is_released() -> None:
    ended = (*RUNNING, exited(W0), exited(W1), exited(PS0, FAILED), exited(PS1, FAILED))
    state, wanted = drive(job(), *ended)
    assert state.phase is JobPhase.STOPPING
    assert wanted == [commands.Release()]
    assert drive(job(), *ended, events.Released())[0].phase is JobPhase.SUCCEEDED


TAKEN = ExitReason(kind=ExitKind.DISRUPTED, message="PreemptionByScheduler: make room")


def test_what_the_cluster_takes_away_comes_back_and_does_not_count() -> None:
    happened: list[events.Event] = list(RUNNING)
    for attempt in range(1, 6):  # more often than its limit of 2
        happened += [exited(W0, TAKEN, attempt)]
        state, wanted = drive(job(), *happened)
        worker = state.replica(W0)
        assert worker is not None
        assert (worker.phase, worker.restarts, state.phase) == (
            ReplicaPhase.BACKING_OFF, 0, JobPhase.RESTARTING,
        )  # fmt: skip
        assert "does not count" in state.message
        (timer,) = wanted
        assert isinstance(timer, commands.StartTimer)
        happened += [events.TimerFired(timer=timer.timer), *started(W0, attempt=attempt + 1)]
    assert drive(job(), *happened)[0].phase is JobPhase.RUNNING


def test_a_job_that_is_never_restarted_is_not_after_a_disruption_either() -> None:
    never = RestartPolicy(when=RestartWhen.NEVER)
    roles = tuple(RoleSpec(role=role, restart=never) for role in (Role.PS, Role.WORKER))
    spec = JobSpec(name="job", command=("train",), roles=roles)
    state, _ = drive(spec, events.Begin(), *started(PS0, W0), exited(W0, TAKEN))
    assert state.outcome is JobPhase.FAILED


def test_the_chief_alone_decides_under_the_chief_policy() -> None:
    spec = job(success=SuccessPolicy.CHIEF, chief=1, ps=1, worker=2)
    happened = (events.Begin(), *started(CHIEF, PS0, W0, W1), exited(CHIEF))
    assert drive(spec, *happened)[0].outcome is JobPhase.SUCCEEDED


def test_worker_0_is_the_chief_where_there_is_none() -> None:
    spec = job(success=SuccessPolicy.CHIEF)
    assert drive(spec, *RUNNING, exited(W1))[0].phase is JobPhase.RUNNING
    assert drive(spec, *RUNNING, exited(W1), exited(W0))[0].outcome is JobPhase.SUCCEEDED


@pytest.mark.parametrize("lost", [PS0, W1])
def test_a_failed_replica_is_launched_again_after_its_backoff(lost: ReplicaId) -> None:
    state, wanted = drive(job(), *RUNNING, exited(lost, FAILED))
    assert state.phase is JobPhase.RESTARTING
    timer = Timer(kind=TimerKind.BACKOFF, replica=lost, attempt=1)
    assert wanted == [commands.StartTimer(timer=timer, seconds=1.0)]
    state, wanted = machines.advance(state, events.TimerFired(timer=timer))
    assert wanted == [commands.Launch(replica=lost, attempt=2, memory_bytes=None)]
    state, _ = machines.advance(state, events.ReplicaStarted(replica=lost, attempt=2))
    assert state.phase is JobPhase.RUNNING


def test_backoff_doubles_with_each_restart() -> None:
    state = drive(job(limit=20), *RUNNING)[0]
    waits = []
    for attempt in range(1, 10):
        state, wanted = machines.advance(state, exited(W0, FAILED, attempt))
        waits += [c.seconds for c in wanted if isinstance(c, commands.StartTimer)]
        timer = Timer(kind=TimerKind.BACKOFF, replica=W0, attempt=attempt)
        state, _ = machines.advance(state, events.TimerFired(timer=timer))
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_replica_may_come_back_thousands_of_times() -> None:
    state = drive(job(limit=10_000), *RUNNING)[0]
    often = tuple(dataclasses.replace(each, restarts=2000) for each in state.replicas)
    _, wanted = machines.advance(dataclasses.replace(state, replicas=often), exited(W0, FAILED))
    (timer,) = (each for each in wanted if isinstance(each, commands.StartTimer))
    assert timer.seconds == machines.MAX_BACKOFF_SECONDS


def test_the_job_fails_when_restarts_are_used_up() -> None:
    state, wanted = drive(job(limit=0), *RUNNING, exited(W0, FAILED))
    assert (state.phase, state.outcome) == (JobPhase.STOPPING, JobPhase.FAILED)
    assert "worker-0 failed: exit code 1" in state.message
    assert asked(wanted) == [W1]


def test_a_failed_evaluator_does_not_fail_the_job() -> None:
    spec = job(limit=0, ps=1, worker=1, evaluator=1)
    happened = (events.Begin(), *started(PS0, W0, EVALUATOR), exited(EVALUATOR, FAILED))
    assert drive(spec, *happened)[0].phase is JobPhase.RUNNING


def test_what_cannot_be_launched_is_not_tried_again() -> None:
    reason = ExitReason(kind=ExitKind.LAUNCH_FAILED, code=127, message="no such command")
    state, _ = drive(job(), events.Begin(), exited(W0, reason))
    assert state.outcome is JobPhase.FAILED


def test_a_launch_that_fails_for_a_moment_follows_the_restart_policy() -> None:
    reason = ExitReason(kind=ExitKind.LAUNCH_FAILED, code=1, message="the code could not be brought: no DNS")
    state, _ = drive(job(), events.Begin(), exited(W0, reason))
    assert (state.phase, state.outcome) == (JobPhase.RESTARTING, None)
    assert state.replica(W0).restarts == 1
    state, _ = drive(job(limit=0), events.Begin(), exited(W0, reason))
    assert state.outcome is JobPhase.FAILED


def test_what_is_sure_to_fail_again_is_not_tried_again() -> None:
    again = events.ReplicaExited(replica=W0, attempt=1, reason=FAILED, is_lasting=True)
    state, _ = drive(job(), *RUNNING, again)
    assert state.replica(W0).phase is ReplicaPhase.FAILED
    assert state.phase is JobPhase.STOPPING
    assert state.message == "worker-0 failed: exit code 1; it would fail again, so it was not restarted"


def test_a_completed_worker_restarts_only_under_always() -> None:
    always = RestartPolicy(when=RestartWhen.ALWAYS, limit=1)
    spec = dataclasses.replace(
        job(), roles=(*job().roles[:1], dataclasses.replace(job().roles[1], restart=always))
    )
    assert drive(spec, *RUNNING, exited(W0))[0].phase is JobPhase.RESTARTING


def test_memory_grows_after_an_out_of_memory_kill_up_to_its_cap() -> None:
    growth = MemoryGrowth(factor=1.5, cap_bytes=1_800)
    worker = RoleSpec(
        role=Role.WORKER, memory_bytes=1_000, memory_growth=growth, restart=RestartPolicy(limit=5)
    )
    state = drive(JobSpec(name="job", roles=(worker,)), events.Begin(), *started(W0))[0]
    limits = []
    for attempt in (1, 2, 3):
        state, _ = machines.advance(state, exited(W0, OUT_OF_MEMORY, attempt))
        timer = Timer(kind=TimerKind.BACKOFF, replica=W0, attempt=attempt)
        state, wanted = machines.advance(state, events.TimerFired(timer=timer))
        limits += [c.memory_bytes for c in wanted if isinstance(c, commands.Launch)]
    assert limits == [1_500, 1_800, 1_800]


def test_the_deadline_fails_the_job() -> None:
    spec = dataclasses.replace(job(), active_deadline_seconds=60.0)
    timer = Timer(kind=TimerKind.DEADLINE)
    _, wanted = drive(spec, events.Begin())
    assert commands.StartTimer(timer=timer, seconds=60.0) in wanted
    state, _ = drive(spec, *RUNNING, events.TimerFired(timer=timer))
    assert (state.outcome, state.message) == (JobPhase.FAILED, "the active deadline of 60 s passed")


def test_a_job_does_not_go_on_for_ever_without_a_ps_that_ended_by_itself() -> None:
    timer = Timer(kind=TimerKind.UNSERVED, replica=PS1, attempt=1)
    state, wanted = drive(job(), *RUNNING, exited(PS1, DONE))
    assert (state.phase, state.outcome) == (JobPhase.RUNNING, None)
    assert wanted == [commands.StartTimer(timer=timer, seconds=machines.UNSERVED_SECONDS)]
    _, wanted = machines.advance(state, events.SupervisorReplaced(live={PS0: 1, W0: 1, W1: 1}))
    assert wanted == [commands.StartTimer(timer=timer, seconds=machines.UNSERVED_SECONDS)]
    ended, wanted = machines.advance(state, events.TimerFired(timer=timer))
    assert (ended.outcome, asked(wanted)) == (JobPhase.FAILED, [W0, W1])
    assert "ps-1 ended by itself, 10 minutes before the job was done" in ended.message


@pytest.mark.parametrize(
    "between",
    [
        (exited(W0, DONE), exited(W1, DONE)),
        (events.StopRequested(),),
        (events.StopRequested(), *(exited(each, DONE) for each in (W0, W1, PS0)), events.Released()),
    ],
    ids=["done", "stopping", "stopped"],
)
def test_a_ps_that_ended_shortly_before_its_job_is_no_failure(between: tuple[events.Event, ...]) -> None:
    """Scripts let their PS end when the workers say that they are done."""
    timer = Timer(kind=TimerKind.UNSERVED, replica=PS1, attempt=1)
    before, _ = drive(job(), *RUNNING, exited(PS1, DONE), *between)
    state, wanted = machines.advance(before, events.TimerFired(timer=timer))
    assert (state, wanted) == (before, [])


def test_a_ps_that_is_to_come_back_comes_back_when_it_has_ended_by_itself() -> None:
    always = RestartPolicy(when=RestartWhen.ALWAYS, limit=1)
    spec = job()
    spec = dataclasses.replace(
        spec, roles=(dataclasses.replace(spec.roles[0], restart=always), *spec.roles[1:])
    )
    state, wanted = drive(spec, *RUNNING, exited(PS1, DONE))
    assert state.phase is JobPhase.RESTARTING
    assert [c.timer.kind for c in wanted if isinstance(c, commands.StartTimer)] == [TimerKind.BACKOFF]


def test_a_replica_that_does_not_end_is_killed_again_and_again() -> None:
    state, _ = drive(job(), *RUNNING, events.StopRequested())
    timer = Timer(kind=TimerKind.KILL, replica=W0, attempt=1)
    for _ in range(3):
        state, wanted = machines.advance(state, events.TimerFired(timer=timer))
        assert commands.Kill(replica=W0, attempt=1) in wanted
        assert any(isinstance(c, commands.StartTimer) and c.timer == timer for c in wanted)


def test_ps_are_asked_to_end_when_all_others_have() -> None:
    spec = job(ps=2, chief=1, worker=1, evaluator=1)
    happened = (events.Begin(), *started(PS0, PS1, CHIEF, W0, EVALUATOR))
    state, wanted = drive(spec, *happened, events.StopRequested())
    assert asked(wanted) == [CHIEF, W0, EVALUATOR]
    assert phases(state, PS0, PS1) == {ReplicaPhase.RUNNING}
    for ends in (W0, CHIEF):
        state, wanted = machines.advance(state, exited(ends, FAILED))
        assert wanted == []
    state, wanted = machines.advance(state, exited(EVALUATOR, DONE))
    assert asked(wanted) == [PS0, PS1]
    assert states.broken_invariants(state) == []


@pytest.mark.parametrize(
    "why",
    [
        events.StopRequested(),
        events.EngineFailed(reason="no room"),
        events.TimerFired(timer=Timer(kind=TimerKind.DEADLINE)),
        exited(PS0, ExitReason(kind=ExitKind.LAUNCH_FAILED, code=127)),
        exited(W0, ExitReason(kind=ExitKind.LAUNCH_FAILED, code=126)),
    ],
)
def test_however_a_job_ends_its_ps_go_last(why: events.Event) -> None:
    spec = dataclasses.replace(job(), active_deadline_seconds=60.0)
    state, wanted = drive(spec, *RUNNING, why)
    assert set(asked(wanted)) == {r.replica for r in state.replicas if r.phase is ReplicaPhase.STOPPING}
    assert {replica.role for replica in asked(wanted)} == {Role.WORKER}


def test_a_trainer_that_does_not_end_is_killed_and_then_the_ps_have_a_grace_of_their_own() -> None:
    timer = Timer(kind=TimerKind.KILL, replica=W1, attempt=1)
    deaf = (*RUNNING, events.StopRequested(), exited(W0, FAILED), events.TimerFired(timer=timer))
    _, wanted = drive(job(), *deaf)
    assert commands.Kill(replica=W1, attempt=1) in wanted
    assert asked(wanted) == []
    _, wanted = drive(job(), *deaf, exited(W1, ExitReason(kind=ExitKind.SIGNAL, signal=9)))
    assert asked(wanted) == [PS0, PS1]


def test_ps_that_end_first_are_not_asked() -> None:
    state, wanted = drive(job(), *RUNNING, events.StopRequested(), exited(PS0, FAILED))
    assert (wanted, phases(state, PS0)) == ([], {ReplicaPhase.STOPPED})
    state, wanted = drive(
        job(), *RUNNING, events.StopRequested(), exited(PS0, FAILED), exited(W0), exited(W1)
    )
    assert asked(wanted) == [PS1]


def test_a_job_without_live_trainers_has_its_ps_end_at_once() -> None:
    waiting = (exited(W0, FAILED), exited(W1, FAILED))
    _, wanted = drive(job(), *RUNNING, *waiting, events.StopRequested())
    assert asked(wanted) == [PS0, PS1]


def test_ps_wait_for_a_worker_that_was_already_on_its_way_out_and_it_is_asked_once() -> None:
    scaled_down = (*RUNNING, scaled(1), events.StopRequested())
    state, wanted = drive(job(), *scaled_down)
    assert asked(wanted) == [W0]
    state, wanted = machines.advance(state, exited(W0, FAILED))
    assert wanted == []
    state, wanted = machines.advance(state, exited(W1, FAILED))
    assert asked(wanted) == [PS0, PS1]


def test_a_new_supervisor_goes_on_with_the_stop_where_the_old_one_was() -> None:
    stopping = (*RUNNING, events.StopRequested(), exited(W0, FAILED))
    both = events.SupervisorReplaced(live={PS0: 1, PS1: 1, W1: 1})
    state, wanted = drive(job(), *stopping, both)
    assert asked(wanted) == [W1]
    assert phases(state, PS0, PS1) == {ReplicaPhase.RUNNING}
    only_ps = events.SupervisorReplaced(live={PS0: 1, PS1: 1}, exits={W1: FAILED})
    state, wanted = drive(job(), *stopping, only_ps)
    assert asked(wanted) == [PS0, PS1]
    state, wanted = machines.advance(state, events.SupervisorReplaced(live={PS1: 1}))
    assert asked(wanted) == [PS1], "the old one may not have come to asking"
    assert drive(job(), *stopping, events.SupervisorReplaced(live={}))[1][-1] == commands.Release()


def phases(state: states.JobState, *replicas: ReplicaId) -> set[ReplicaPhase]:
    return {replica.phase for replica in state.replicas if replica.replica in replicas}


def test_a_job_stopped_before_it_began_needs_no_replica_to_end() -> None:
    state, wanted = drive(job(), events.StopRequested())
    assert wanted == [commands.Release()]
    assert machines.advance(state, events.Released())[0].phase is JobPhase.STOPPED


def test_a_stopped_job_resumes_with_new_attempts_and_all_its_restarts() -> None:
    stopped = drive(
        job(), *RUNNING, exited(W0, FAILED), events.StopRequested(),
        exited(W1, FAILED), exited(PS0, FAILED), exited(PS1, FAILED), events.Released(),
    )[0]  # fmt: skip
    assert stopped.phase is JobPhase.STOPPED
    pending, wanted = machines.advance(stopped, events.ResumeRequested())
    assert (pending.phase, pending.outcome, wanted) == (JobPhase.PENDING, None, [])
    state, wanted = machines.advance(pending, events.Begin())
    assert {(c.replica, c.attempt) for c in wanted if isinstance(c, commands.Launch)} == {
        (PS0, 2), (PS1, 2), (W0, 2), (W1, 2)
    }  # fmt: skip
    assert all(replica.restarts == 0 for replica in state.replicas)


def test_a_role_that_comes_back_goes_on_from_its_attempts() -> None:
    stop = (events.StopRequested(), events.Released())
    without = events.ResumeRequested(spec=job(worker=2))
    _, wanted = drive(
        job(), *RUNNING, stop[0], exited(W0), exited(W1), exited(PS0), exited(PS1), stop[1],
        without, *stop, events.ResumeRequested(spec=job()), events.Begin(),
    )  # fmt: skip
    launched = {c.replica: c.attempt for c in wanted if isinstance(c, commands.Launch)}
    assert launched == {PS0: 2, PS1: 2, W0: 2, W1: 2}


def test_who_is_no_longer_of_a_resumed_job_has_used_no_restart() -> None:
    backed_off = (*RUNNING, exited(PS1, FAILED), events.StopRequested())
    ended = (exited(W0), exited(W1), exited(PS0), events.Released())
    state, _ = drive(job(), *backed_off, *ended, events.ResumeRequested(spec=job(limit=0, ps=1, worker=2)))
    gone = state.replica(PS1)
    assert gone is not None
    assert (gone.phase, gone.restarts) == (ReplicaPhase.STOPPED, 0)


def test_a_succeeded_job_cannot_be_resumed() -> None:
    ended = (*RUNNING, exited(W0), exited(W1), exited(PS0), exited(PS1), events.Released())
    state, wanted = drive(job(), *ended, events.ResumeRequested())
    assert (state.phase, wanted) == (JobPhase.SUCCEEDED, [])


def test_a_new_supervisor_treats_what_is_gone_as_lost_and_keeps_what_lives() -> None:
    replaced = events.SupervisorReplaced(live={PS0: 1, PS1: 1, W0: 1})
    state, wanted = drive(job(), *RUNNING, replaced)
    assert state.phase is JobPhase.RESTARTING
    lost = state.replica(W1)
    assert lost is not None
    assert lost.exit is not None
    assert (lost.phase, lost.exit.kind) == (ReplicaPhase.BACKING_OFF, ExitKind.LOST)
    assert [type(c) for c in wanted] == [commands.StartTimer]


def test_a_new_supervisor_knows_how_the_missing_ended() -> None:
    replaced = events.SupervisorReplaced(live={PS0: 1, PS1: 1}, exits={W0: DONE, W1: DONE})
    assert drive(job(), *RUNNING, replaced)[0].outcome is JobPhase.SUCCEEDED


def test_a_new_supervisor_starts_the_timers_again() -> None:
    spec = dataclasses.replace(job(), active_deadline_seconds=60.0)
    replaced = events.SupervisorReplaced(live={PS0: 1, PS1: 1, W1: 1}, active_seconds=45.0)
    _, wanted = drive(spec, *RUNNING, exited(W0, FAILED), replaced)
    assert {(c.timer.kind, c.seconds) for c in wanted if isinstance(c, commands.StartTimer)} == {
        (TimerKind.DEADLINE, 15.0), (TimerKind.BACKOFF, 0.0)
    }  # fmt: skip


def test_a_new_supervisor_counts_a_live_replica_as_started() -> None:
    replaced = events.SupervisorReplaced(live={PS0: 1, PS1: 1, W0: 1, W1: 1})
    assert drive(job(), events.Begin(), replaced)[0].phase is JobPhase.RUNNING


def test_an_engine_that_cannot_run_the_job_fails_it() -> None:
    state, _ = drive(job(), events.EngineFailed(reason="no room"))
    assert (state.outcome, state.message) == (JobPhase.FAILED, "no room")


@pytest.mark.parametrize(
    "stale",
    [
        exited(W0, FAILED, attempt=7),
        exited(ReplicaId(Role.WORKER, 99), FAILED),
        *started(W0, attempt=7),
        events.Begin(),
        events.Released(),
        events.ResumeRequested(),
        events.TimerFired(timer=Timer(kind=TimerKind.BACKOFF, replica=W0, attempt=1)),
        events.TimerFired(timer=Timer(kind=TimerKind.KILL, replica=W0, attempt=1)),
        events.TimerFired(timer=Timer(kind=TimerKind.DEADLINE)),
    ],
)
def test_an_event_that_does_not_fit_changes_nothing(stale: events.Event) -> None:
    running = drive(job(), *RUNNING)[0]
    assert machines.advance(running, stale) == (running, [])


def test_a_late_release_of_an_earlier_life_does_not_end_a_job_that_still_has_replicas() -> None:
    stopping = drive(job(), *RUNNING, events.StopRequested())[0]
    assert machines.advance(stopping, events.Released()) == (stopping, [])


def workers(state, *, in_spec=True):
    return {
        r.replica.index: str(r.phase)
        for r in state.replicas
        if r.replica.role is Role.WORKER and state.spec.has(r.replica) is in_spec
    }


def scaled(count):
    return events.ScaleRequested(workers=count)


def test_more_workers_are_launched_and_fewer_asked_to_end():
    state, _ = machines.advance(states.initial(elastic()), events.Begin())
    state = all_started(state)
    state, wanted = machines.advance(state, scaled(3))
    assert wanted == [commands.Launch(replica=ReplicaId(Role.WORKER, 2), attempt=1, memory_bytes=None)]
    assert (str(state.phase), state.message) == ("starting", "scaled to 3 workers")
    state = all_started(state)
    assert str(state.phase) == "running"
    state, wanted = machines.advance(state, scaled(1))
    assert [replica.index for replica in asked(wanted)] == [1, 2]
    assert str(state.phase) == "running"
    state, wanted = machines.advance(state, scaled(2))
    assert wanted == [], "the old attempt has to leave first"
    state, wanted = machines.advance(state, left(1))
    assert wanted == [commands.Launch(replica=ReplicaId(Role.WORKER, 1), attempt=2, memory_bytes=None)]
    state, wanted = machines.advance(state, left(2))
    assert wanted == []
    assert workers(state, in_spec=False) == {2: "stopped"}


def test_a_worker_that_left_counts_neither_for_nor_against_success():
    state, _ = machines.advance(states.initial(elastic()), events.Begin())
    state, _ = machines.advance(all_started(state), scaled(1))
    state, wanted = machines.advance(state, left(1, ExitReason(kind=ExitKind.ERROR, code=1)))
    assert (wanted, str(state.phase)) == ([], "running")
    done = events.ReplicaExited(
        replica=ReplicaId(Role.WORKER, 0), attempt=1, reason=ExitReason(kind=ExitKind.COMPLETED)
    )
    state, _ = machines.advance(state, done)
    assert str(state.outcome) == "succeeded"


def test_the_last_worker_that_had_not_ended_may_be_taken_away():
    state, _ = machines.advance(states.initial(elastic()), events.Begin())
    done = events.ReplicaExited(
        replica=ReplicaId(Role.WORKER, 0), attempt=1, reason=ExitReason(kind=ExitKind.COMPLETED)
    )
    state, _ = machines.advance(all_started(state), done)
    state, _ = machines.advance(state, scaled(1))
    assert str(state.outcome) == "succeeded"


def elastic():
    return JobSpec(name="job", roles=(RoleSpec(role=Role.PS), RoleSpec(role=Role.WORKER, replicas=2)))


def all_started(state):
    for each in state.replicas:
        state, _ = machines.advance(state, events.ReplicaStarted(replica=each.replica, attempt=each.attempt))
    return state


def left(index, reason=None):
    reason = reason or ExitReason(kind=ExitKind.SIGNAL, signal=15)
    return events.ReplicaExited(replica=ReplicaId(Role.WORKER, index), attempt=1, reason=reason)
