"""Whole lives of jobs in random worlds: events late, doubled and lost, supervisors killed at any point."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.examples import examples

from paceline.control import commands, events, machines, states
from paceline.model.jobs.job_specs import (
    JobSpec,
    MemoryGrowth,
    RestartPolicy,
    RestartWhen,
    RoleSpec,
    SuccessPolicy,
)
from paceline.model.jobs.statuses import ExitKind, ExitReason, JobPhase
from paceline.model.roles import ReplicaId, Role

specs = st.builds(
    JobSpec,
    name=st.just("job"),
    success=st.sampled_from(SuccessPolicy),
    active_deadline_seconds=st.none() | st.just(60.0),
    roles=st.lists(
        st.builds(
            RoleSpec,
            role=st.sampled_from([Role.PS, Role.CHIEF, Role.EVALUATOR]),
            replicas=st.integers(1, 2),
            memory_bytes=st.none() | st.just(1000),
            memory_growth=st.none() | st.just(MemoryGrowth(factor=2.0, cap_bytes=3000)),
            restart=st.builds(RestartPolicy, when=st.sampled_from(RestartWhen), limit=st.integers(0, 2)),
        ),
        max_size=3,
        unique_by=lambda role: role.role,
    ).map(
        lambda roles: (
            *roles,
            RoleSpec(role=Role.WORKER, replicas=2, restart=RestartPolicy(limit=1)),
        )
    ),
)
reasons = st.builds(ExitReason, kind=st.sampled_from(list(ExitKind)))


class World(RuleBasedStateMachine):
    """An engine that keeps what was launched, and a supervisor that may forget everything but the state."""

    def __init__(self) -> None:
        super().__init__()
        self.state: states.JobState | None = None
        self.alive: dict[ReplicaId, int] = {}
        self.ended: dict[tuple[ReplicaId, int], ExitReason] = {}
        self.timers: list[events.Timer] = []
        self.unsaid: list[events.Event] = []
        self.said: list[events.Event] = []
        self.releasing = False
        self.launched: set[tuple[ReplicaId, int]] = set()
        self.asked: set[ReplicaId] = set()
        self.are_deaf = False

    def feed(self, event: events.Event, *, execute: bool = True) -> None:
        assert self.state is not None
        before = self.state
        self.state, wanted = machines.advance(before, event)
        self.said.append(event)
        decided = self.state.outcome is not None
        for command in wanted:
            assert not (decided and isinstance(command, commands.Launch)), "launched after the outcome"
            if execute:
                self.execute(command)

    def execute(self, command: commands.Command) -> None:
        match command:
            case commands.Launch(replica=replica, attempt=attempt):
                assert replica not in self.alive, "two attempts of one replica alive at once"
                assert (replica, attempt) not in self.launched, "the same attempt launched twice"
                self.launched.add((replica, attempt))
                self.alive[replica] = attempt
                self.unsaid.append(events.ReplicaStarted(replica=replica, attempt=attempt))
            case commands.Terminate(replica=replica):
                if replica.role is Role.PS:
                    left = [str(each) for each in self.alive if each.role is not Role.PS]
                    assert not left, f"{replica} is asked to end before {left}"
                self.asked.add(replica)
            case commands.Kill(replica=replica):
                assert replica in self.asked or replica not in self.alive, "killed unasked"
                self.end(replica, ExitReason(kind=ExitKind.SIGNAL, signal=9))
            case commands.StartTimer(timer=timer):
                self.timers.append(timer)
            case commands.Release():
                assert not self.alive, "released while something lives"
                self.releasing = True

    def end(self, replica: ReplicaId, reason: ExitReason) -> None:
        attempt = self.alive.pop(replica, None)
        self.asked.discard(replica)
        if attempt is not None:
            self.ended[replica, attempt] = reason
            self.unsaid.append(events.ReplicaExited(replica=replica, attempt=attempt, reason=reason))

    @precondition(lambda self: self.state is None)
    @rule(spec=specs, are_deaf=st.booleans())
    def submit(self, spec: JobSpec, are_deaf: bool) -> None:
        self.are_deaf = are_deaf
        self.state = states.initial(spec)
        self.feed(events.Begin())

    @precondition(lambda self: bool(self.alive))
    @rule(data=st.data(), reason=reasons)
    def a_replica_ends(self, data: st.DataObject, reason: ExitReason) -> None:
        self.end(data.draw(st.sampled_from(sorted(self.alive))), reason)

    @precondition(lambda self: bool(self.unsaid))
    @rule(data=st.data())
    def an_event_arrives_in_any_order(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.unsaid) - 1))
        self.feed(self.unsaid.pop(index))

    @precondition(lambda self: bool(self.said))
    @rule(data=st.data())
    def an_event_arrives_again(self, data: st.DataObject) -> None:
        again = data.draw(st.sampled_from(self.said))
        if not isinstance(again, events.SupervisorReplaced | events.StopRequested | events.ResumeRequested):
            if isinstance(again, events.Released) and self.alive:
                return
            self.feed(again)

    @precondition(lambda self: bool(self.timers))
    @rule(data=st.data())
    def a_timer_fires(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.timers) - 1))
        self.feed(events.TimerFired(timer=self.timers.pop(index)))

    @precondition(lambda self: self.state is not None)
    @rule()
    def a_caller_stops_the_job(self) -> None:
        self.feed(events.StopRequested())

    @precondition(lambda self: self.state is not None)
    @rule(workers=st.integers(0, 4))
    def a_caller_scales_the_job(self, workers: int) -> None:
        self.feed(events.ScaleRequested(workers=workers))

    @precondition(lambda self: self.state is not None)
    @rule(spec=st.none() | specs)
    def a_caller_resumes_the_job(self, spec: JobSpec | None) -> None:
        self.feed(events.ResumeRequested(spec=spec))
        self.feed(events.Begin())

    @precondition(lambda self: self.releasing)
    @rule()
    def all_is_released(self) -> None:
        self.releasing = False
        if not self.alive:
            self.feed(events.Released())

    @precondition(lambda self: self.state is not None)
    @rule(executed=st.booleans(), data=st.data())
    def the_supervisor_is_killed(self, executed: bool, data: st.DataObject) -> None:
        """Its last event was saved, but perhaps not executed; its timers and unheard events are gone."""
        if self.unsaid:
            self.feed(self.unsaid.pop(data.draw(st.integers(0, len(self.unsaid) - 1))), execute=executed)
        self.replace_supervisor()

    def replace_supervisor(self) -> None:
        assert self.state is not None
        self.timers, self.unsaid, self.releasing = [], [], False
        exits = {
            r.replica: self.ended[r.replica, r.attempt]
            for r in self.state.replicas
            if (r.replica, r.attempt) in self.ended
        }
        self.feed(events.SupervisorReplaced(live=dict(self.alive), exits=exits))

    @invariant()
    def the_state_is_sound(self) -> None:
        if self.state is not None:
            assert states.broken_invariants(self.state) == []

    @invariant()
    def what_is_not_wanted_leaves(self) -> None:
        for replica in self.alive:
            state = self.state.replica(replica)
            assert self.state.spec.has(replica) or not state.phase.is_live or state.phase == "stopping"

    @invariant()
    def nothing_lives_in_a_final_job(self) -> None:
        if self.state is not None and self.state.phase.is_final:
            assert not self.alive

    def teardown(self) -> None:
        """From wherever the world is, a job that is asked to stop ends, and leaves nothing.

        Its replicas end because they were asked to; those that are deaf only when they are killed.
        """
        if self.state is None:
            return
        self.replace_supervisor()
        self.feed(events.StopRequested())
        for _ in range(200):
            if self.state.phase.is_final:
                break
            for replica in list(self.asked) if not self.are_deaf else ():
                self.end(replica, ExitReason(kind=ExitKind.SIGNAL, signal=15))
            while self.unsaid:
                self.feed(self.unsaid.pop(0))
            while self.timers and not self.unsaid:
                self.feed(events.TimerFired(timer=self.timers.pop(0)))
            if self.releasing:
                self.all_is_released()
        assert self.state.phase.is_final, f"never ends: {self.state}"
        assert not self.alive
        assert self.state.phase in (JobPhase.SUCCEEDED, JobPhase.FAILED, JobPhase.STOPPED)


World.TestCase.settings = settings(max_examples=examples(400), stateful_step_count=40)
TestWorld = World.TestCase
