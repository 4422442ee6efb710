"""Jobs driven by looking, in worlds where the one who looks is killed at any point."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.examples import examples

from paceline.control import commands, events, reconciliations, states
from paceline.control.reconciliations import PodState, ReconcileProgress, Stage
from paceline.model.jobs.job_specs import JobSpec, RestartPolicy, RoleSpec, SuccessPolicy
from paceline.model.jobs.statuses import ExitKind, ExitReason, JobPhase
from paceline.model.roles import ReplicaId, Role

DONE = ExitReason(kind=ExitKind.COMPLETED)
FAILED = ExitReason(kind=ExitKind.ERROR, code=1)
PS, WORKER = ReplicaId(Role.PS, 0), ReplicaId(Role.WORKER, 0)


def job(**more: object) -> JobSpec:
    roles = tuple(
        RoleSpec(role=role, replicas=1, restart=RestartPolicy(limit=1)) for role in (Role.PS, Role.WORKER)
    )
    return JobSpec(name="job", roles=roles, **more)


def running() -> ReconcileProgress:
    """A job of a PS and a worker that both run."""
    progress, _ = reconciliations.reconcile(
        ReconcileProgress(state=states.initial(job())), (), 0.0, [events.Begin()]
    )
    progress, _ = reconciliations.reconcile(progress, [pod_state(PS), pod_state(WORKER)], 1.0)
    assert progress.state.phase is JobPhase.RUNNING
    return progress


def pod_state(replica: ReplicaId, stage: Stage = Stage.RUNNING, attempt: int = 1, **more: object) -> PodState:
    return PodState(replica=replica, attempt=attempt, stage=stage, **more)


def launch(replica: ReplicaId, attempt: int = 1) -> commands.Launch:
    return commands.Launch(replica=replica, attempt=attempt, memory_bytes=None)


def test_what_is_missing_is_launched_until_it_is_there() -> None:
    progress = ReconcileProgress(state=states.initial(job()))
    progress, wanted = reconciliations.reconcile(progress, (), 0.0, [events.Begin()])
    assert wanted == [launch(PS), launch(WORKER)]
    progress, wanted = reconciliations.reconcile(progress, [pod_state(PS, Stage.COMING)], 0.0)
    assert wanted == [launch(WORKER)], "the one who should have launched it was killed"


def test_what_a_user_removed_is_lost_and_comes_back() -> None:
    progress, wanted = reconciliations.reconcile(running(), [pod_state(PS)], 10.0)
    assert progress.state.replica(WORKER).exit.kind is ExitKind.LOST
    assert (wanted, progress.next_due) == ([], 11.0)
    progress, wanted = reconciliations.reconcile(progress, [pod_state(PS)], 11.0)
    assert wanted == [launch(WORKER, 2)]
    assert progress.timers == {}


def test_an_older_attempt_ends_before_the_next_one_begins() -> None:
    """An attempt may be taken for lost with its node and turn up again."""
    lost = pod_state(WORKER, Stage.ENDED, reason=ExitReason(kind=ExitKind.LOST))
    progress, _ = reconciliations.reconcile(running(), [pod_state(PS), lost], 10.0)
    progress, wanted = reconciliations.reconcile(progress, [pod_state(PS), pod_state(WORKER)], 20.0)
    assert wanted == [commands.Kill(replica=WORKER, attempt=1)]
    _, wanted = reconciliations.reconcile(progress, [pod_state(PS), lost], 20.0)
    assert wanted == [launch(WORKER, 2)]


def test_who_does_not_leave_is_killed() -> None:
    both = [pod_state(PS), pod_state(WORKER)]
    progress, wanted = reconciliations.reconcile(running(), both, 10.0, [events.StopRequested()])
    assert wanted == [commands.Terminate(replica=WORKER, attempt=1)]
    leaving = [pod_state(PS), pod_state(WORKER, is_leaving=True)]
    progress, wanted = reconciliations.reconcile(progress, leaving, 11.0)
    assert wanted == []
    progress, wanted = reconciliations.reconcile(progress, leaving, progress.next_due)
    assert wanted == [commands.Kill(replica=WORKER, attempt=1)]
    progress, wanted = reconciliations.reconcile(progress, [pod_state(PS)], 50.0)
    assert wanted == [commands.Terminate(replica=PS, attempt=1)]
    leaving = [pod_state(PS, is_leaving=True)]
    assert reconciliations.reconcile(progress, leaving, 84.0)[1] == [], "its own grace has begun at 50 s"
    progress, wanted = reconciliations.reconcile(progress, leaving, 85.0)
    assert wanted == [commands.Kill(replica=PS, attempt=1)]
    progress, wanted = reconciliations.reconcile(progress, [], 100.0)
    assert (progress.state.phase, wanted) == (JobPhase.STOPPING, [])
    progress, _ = reconciliations.reconcile(progress, [], 100.0)
    assert progress.state.phase is JobPhase.STOPPED
    assert progress.timers == {}


def test_an_operator_that_was_replaced_asks_the_ps_itself_once_the_trainers_have_ended() -> None:
    both = [pod_state(PS), pod_state(WORKER)]
    progress, _ = reconciliations.reconcile(running(), both, 10.0, [events.StopRequested()])
    gone = [pod_state(PS), pod_state(WORKER, Stage.ENDED, reason=FAILED)]
    progress, unheard = reconciliations.reconcile(progress, gone, 12.0)
    assert unheard == [commands.Terminate(replica=PS, attempt=1)]
    assert reconciliations.reconcile(progress, gone, 13.0)[1] == unheard


def test_a_ps_that_is_not_there_yet_when_its_job_is_stopped_is_not_launched() -> None:
    progress, _ = reconciliations.reconcile(
        ReconcileProgress(state=states.initial(job())), (), 0.0, [events.Begin()]
    )
    only_worker = [pod_state(WORKER, Stage.COMING)]
    progress, wanted = reconciliations.reconcile(progress, only_worker, 1.0, [events.StopRequested()])
    assert wanted == [commands.Terminate(replica=WORKER, attempt=1)]
    progress, wanted = reconciliations.reconcile(progress, [pod_state(WORKER, is_leaving=True)], 2.0)
    assert (wanted, progress.state.replica(PS).exit.kind) == ([], ExitKind.LAUNCH_FAILED)
    late = [pod_state(PS, Stage.COMING)]
    progress, wanted = reconciliations.reconcile(progress, late, 3.0)
    assert wanted == [commands.Kill(replica=PS, attempt=1)], "it was on its way all the same"
    progress, _ = reconciliations.reconcile(progress, (), 4.0)
    assert progress.state.phase is JobPhase.STOPPED


class World(RuleBasedStateMachine):
    """A cluster, and an operator that saves what it knows and may die between any two of its actions."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.kept: ReconcileProgress | None = None
        self.cluster: dict[tuple[ReplicaId, int], PodState] = {}

    def look(self, *requests: events.Event, executed: int = 1000) -> None:
        assert self.kept is not None
        self.kept, wanted = reconciliations.reconcile(self.kept, self.cluster.values(), self.now, requests)
        for command in wanted[:executed]:
            self.execute(command)

    def execute(self, command: commands.Command) -> None:
        key = command.replica, command.attempt
        match command:
            case commands.Launch():
                assert not any(self.lives(each) for each in self.cluster if each[0] == key[0]), "two at once"
                self.cluster[key] = pod_state(key[0], Stage.COMING, key[1])
            case commands.Terminate():
                if key[0].role is Role.PS:
                    left = [each for each in self.cluster if each[0].role is not Role.PS and self.lives(each)]
                    assert not left, f"{key} is asked to end before {left}"
                self.change(key, is_leaving=True)
            case commands.Kill():
                self.cluster.pop(key, None)

    def lives(self, key: tuple[ReplicaId, int]) -> bool:
        return self.cluster[key].stage is not Stage.ENDED

    def change(self, key: tuple[ReplicaId, int], **fields: object) -> None:
        old = self.cluster[key]
        self.cluster[key] = pod_state(
            old.replica, attempt=old.attempt, **{"stage": old.stage, "is_leaving": old.is_leaving, **fields}
        )

    @precondition(lambda self: self.kept is None)
    @rule(success=st.sampled_from(SuccessPolicy), deadline=st.none() | st.just(60.0))
    def submit(self, success: SuccessPolicy, deadline: float | None) -> None:
        spec = job(success=success, active_deadline_seconds=deadline)
        self.kept = ReconcileProgress(state=states.initial(spec))
        self.look(events.Begin())

    @precondition(lambda self: bool(self.cluster))
    @rule(data=st.data(), reason=st.sampled_from([DONE, FAILED, None]))
    def something_happens_to_a_replica(self, data: st.DataObject, reason: ExitReason | None) -> None:
        key = data.draw(st.sampled_from(sorted(self.cluster)))
        happening = data.draw(st.sampled_from(["starts", "ends", "is removed"]))
        if happening == "is removed":
            del self.cluster[key]
        elif self.lives(key):
            self.change(key, **({"stage": Stage.RUNNING} if happening == "starts" else
                                {"stage": Stage.ENDED, "reason": reason}))  # fmt: skip

    @precondition(lambda self: self.kept is not None)
    @rule(seconds=st.sampled_from([0.0, 1.0, 40.0]), executed=st.sampled_from([0, 1, 1000]))
    def the_operator_looks(self, seconds: float, executed: int) -> None:
        self.now += seconds
        self.look(executed=executed)

    @precondition(lambda self: self.kept is not None)
    @rule(workers=st.integers(0, 3), executed=st.sampled_from([0, 1, 1000]))
    def a_caller_scales_the_job(self, workers: int, executed: int) -> None:
        self.look(events.ScaleRequested(workers=workers), executed=executed)

    @precondition(lambda self: self.kept is not None)
    @rule(executed=st.sampled_from([0, 1, 1000]))
    def a_caller_stops_the_job(self, executed: int) -> None:
        self.look(events.StopRequested(), executed=executed)

    @precondition(lambda self: self.kept is not None)
    @rule()
    def a_caller_resumes_the_job(self) -> None:
        self.look(events.ResumeRequested(), events.Begin())

    @precondition(lambda self: self.kept is not None)
    @rule()
    def all_goes_well_from_here(self) -> None:
        """Whatever was half done, a job that is left alone ends, and nothing of it runs."""
        for _ in range(40):
            for key in list(self.cluster):
                leaving, ps = self.cluster[key].is_leaving, key[0].role is Role.PS
                if leaving:
                    del self.cluster[key]
                elif self.lives(key):
                    came = self.cluster[key].stage is Stage.RUNNING and not ps
                    self.change(
                        key, **({"stage": Stage.ENDED, "reason": DONE} if came else {"stage": Stage.RUNNING})
                    )
            self.now += 30.0
            self.look()
        assert self.kept.state.phase.is_final
        assert not any(self.lives(key) for key in self.cluster)

    @invariant()
    def the_state_is_sound(self) -> None:
        if self.kept is not None:
            assert states.broken_invariants(self.kept.state) == []
            assert len(self.kept.timers) <= 1 + len(self.kept.state.replicas)


World.TestCase.settings = settings(max_examples=examples(300), stateful_step_count=30)
TestWorld = World.TestCase
