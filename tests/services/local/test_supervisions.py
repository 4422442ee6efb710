"""What a supervisor has an engine do, in which order; the engine is one in memory."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from paceline.control import events, machines, states
from paceline.engines.engines import Launched
from paceline.engines.local import folders
from paceline.errors import EngineError, StoreError
from paceline.model.jobs.adjustments import Allowance
from paceline.model.jobs.job_specs import JobSpec, RestartPolicy, RestartWhen, RoleSpec
from paceline.model.jobs.runs import LOCAL, RESIZE, STOP, JobEvent, Run
from paceline.model.jobs.statuses import ExitKind, ExitReason, JobPhase
from paceline.model.roles import ReplicaId, Role
from paceline.services.local import supervisions
from paceline.stores import Store, open_store

WORKER, CHIEF = ReplicaId(Role.WORKER, 0), ReplicaId(Role.CHIEF, 0)
TERMINATED = ExitReason(kind=ExitKind.SIGNAL, signal=15)


class Engine:
    """Replicas end when they are asked to; the worker cannot be launched, and perhaps nothing prepared.

    Args:
        trouble: why nothing can be prepared.
        refusals: what it says when limits are to be set, one after the other; then it sets them.
        ends: whether the chief ends when limits are set.
    """

    def __init__(self, trouble: str = "", refusals: Sequence[str] = (), *, ends: bool = False) -> None:
        self.done: list[str] = []
        self._refusals, self.is_adapted = list(refusals), False
        self._trouble, self.ends = trouble, ends
        self._live: set[ReplicaId] = set()
        self._exits: list[events.Event] = []

    def prepare(self) -> list[str]:
        if self._trouble:
            raise EngineError(self._trouble)
        return []

    def adapt(self, spec: JobSpec, allowances: object, links: object) -> list[str]:
        if self._refusals:
            return [self._refusals.pop(0)]
        self.is_adapted = True
        return []

    def launch(self, attempt: int, allowance: Allowance) -> Launched:
        replica = allowance.replica
        if replica == WORKER:
            raise EngineError("there is no place for it")
        self.done.append(f"launch {replica}")
        self._live.add(replica)
        return Launched(host="here", address="127.0.0.1:1", pid=1, cores=())

    def terminate(self, replica: ReplicaId, attempt: int) -> None:
        if replica not in self._live:
            return
        self._live.remove(replica)
        self.done.append(f"terminate {replica}")
        self._exits.append(events.ReplicaExited(replica=replica, attempt=attempt, reason=TERMINATED))

    def kill(self, replica: ReplicaId, attempt: int) -> None: ...

    def poll(self, timeout_seconds: float) -> list[events.Event]:
        if self.ends and self.is_adapted and ReplicaId(Role.CHIEF, 0) in self._live:
            self._exit_chief()
        exits, self._exits = self._exits, []
        return exits

    def _exit_chief(self) -> None:
        chief = ReplicaId(Role.CHIEF, 0)
        self._live.remove(chief)
        self._exits.append(events.ReplicaExited(replica=chief, attempt=1, reason=TERMINATED))

    def adopt(self, attempts: Mapping[ReplicaId, int]) -> events.SupervisorReplaced:
        self._live |= attempts.keys()
        return events.SupervisorReplaced(live=attempts)

    def release(self) -> None:
        self.done.append("release")


def supervised(
    path: Path, state: states.JobState, engine: Engine, stopwatch: Callable[[], float] = lambda: 1.0
) -> tuple[JobPhase, str]:
    """Return how a job ends that a supervisor finds in this state, and what is said of it."""
    folder = folders.RunFolder(path / "job")
    folder.create()
    run = Run(
        name="job", spec=state.spec, source="", engine=LOCAL, directory=str(folder.path), submitted_at=0.0
    )
    with open_store(f"sqlite:///{path}/store.db") as store:
        store.create_run(run, state)
        store.save_state("job", state, at=0.0)
        supervision = supervisions.Supervision(
            "job", store=store, engine=engine, folder=folder, clock=lambda: 1.0, stopwatch=stopwatch
        )
        return supervision.run(), store.get_run("job").message


def fresh(*order: Role) -> states.JobState:
    spec = JobSpec(name="job", command=("train",), roles=tuple(RoleSpec(role=role) for role in order))
    return states.initial(spec)


def test_ps_are_terminated_after_the_trainers(tmp_path: Path) -> None:
    engine = Engine()
    phase, message = supervised(tmp_path, fresh(Role.PS, Role.CHIEF, Role.WORKER), engine)
    assert (phase, "there is no place for it" in message) == (JobPhase.FAILED, True)
    assert engine.done == [
        "launch ps-0", "launch chief-0", "terminate chief-0", "terminate ps-0", "release"
    ]  # fmt: skip


def test_nothing_is_launched_after_a_launch_that_ended_the_job(tmp_path: Path) -> None:
    engine = Engine()
    assert supervised(tmp_path, fresh(Role.CHIEF, Role.WORKER, Role.PS), engine)[0] is JobPhase.FAILED
    assert engine.done == ["launch chief-0", "terminate chief-0", "release"]


def test_what_an_earlier_supervisor_left_is_ended_also_when_the_engine_fails(tmp_path: Path) -> None:
    engine = Engine("no cgroup can be made")
    begun, _ = machines.advance(fresh(Role.PS, Role.CHIEF), events.Begin())
    assert supervised(tmp_path, begun, engine) == (JobPhase.FAILED, "no cgroup can be made")
    assert engine.done == ["terminate chief-0", "terminate ps-0", "release"]


def test_what_the_engine_refuses_for_a_while_is_tried_again_and_noted_once(tmp_path: Path) -> None:
    """What was cut has to come back: the chief ends, and with it the job, when all limits are set."""
    engine = Engine(refusals=["the link keeps its rate"] * 3, ends=True)
    begun, _ = machines.advance(fresh(Role.CHIEF), events.Begin())
    never = RestartPolicy(when=RestartWhen.NEVER)
    spec = dataclasses.replace(begun.spec, roles=(RoleSpec(role=Role.CHIEF, restart=never),))
    seconds = itertools.count()
    phase, _ = supervised(
        tmp_path, dataclasses.replace(begun, spec=spec), engine, stopwatch=lambda: float(next(seconds))
    )
    assert phase is JobPhase.FAILED
    assert engine.is_adapted
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        said = [event.message for _, event in store.events("job") if event.kind == "engine-failed"]
    assert said == ["the link keeps its rate"]


class Abandoned(Engine):
    """The engine of a job whose worker has ended while no supervisor watched it."""

    def adopt(self, attempts: Mapping[ReplicaId, int]) -> events.SupervisorReplaced:
        self._live |= attempts.keys() - {CHIEF}
        return events.SupervisorReplaced(
            live={replica: attempt for replica, attempt in attempts.items() if replica != CHIEF},
            exits={CHIEF: ExitReason(kind=ExitKind.COMPLETED, code=0)},
        )


def test_what_a_replica_wrote_while_no_supervisor_watched_is_stored(tmp_path: Path) -> None:
    begun, _ = machines.advance(fresh(Role.CHIEF), events.Begin())
    spool = Path(folders.RunFolder(tmp_path / "job").files(CHIEF, 1).spool)
    report = {"type": "evaluation", "at": 1.0, "auc": 0.75, "step": 7, "examples": 10}

    class Written(Abandoned):
        def prepare(self) -> list[str]:
            spool.parent.mkdir(parents=True, exist_ok=True)
            spool.write_text(json.dumps(report) + "\n")
            return super().prepare()

    assert supervised(tmp_path, begun, Written())[0] is JobPhase.SUCCEEDED
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        assert [each.auc for each in store.evaluations("job")] == [0.75]


def test_the_deadline_counts_from_when_the_job_began_again(tmp_path: Path) -> None:
    """It was stopped for a day; then it was resumed, and its supervisor is replaced."""
    spec = dataclasses.replace(fresh(Role.CHIEF).spec, active_deadline_seconds=7200.0)
    begun, _ = machines.advance(states.initial(spec), events.Begin())
    path = tmp_path / "job"
    folders.RunFolder(path).create()
    run = Run(name="job", spec=spec, source="", engine=LOCAL, directory=str(path), submitted_at=0.0)
    told = [
        JobEvent(at=at, kind=kind, message="")
        for at, kind in (
            (0.0, "starting"),
            (3600.0, "stopped"),
            (90_000.0, "starting"),
            (90_100.0, "starting"),
        )
    ]
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        store.create_run(run, begun)
        store.save_state("job", begun, at=0.0, events=told)
        supervision = supervisions.Supervision(
            "job", store=store, engine=Engine(), folder=folders.RunFolder(path), clock=lambda: 90_600.0,
            stopwatch=lambda: 1.0,
        )  # fmt: skip
        adopted = supervision._adopted()
    assert isinstance(adopted, events.SupervisorReplaced)
    assert adopted.active_seconds == 600.0


def test_a_job_whose_engine_fails_before_it_has_begun_fails(tmp_path: Path) -> None:
    engine = Engine("no cgroup can be made")
    assert supervised(tmp_path, fresh(Role.PS, Role.CHIEF), engine)[0] is JobPhase.FAILED
    assert engine.done == ["release"]


def test_the_end_of_a_job_is_kept_together_with_the_event_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(Store, "append_events", fails)
    assert supervised(tmp_path, fresh(Role.CHIEF, Role.WORKER), Engine())[0] is JobPhase.FAILED
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        assert store.events("job")[-1][1].kind == "failed"


class Killed(BaseException):
    """The supervisor has no time for anything more."""


def test_a_request_that_no_state_takes_into_account_is_there_for_the_next_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, _ = machines.advance(fresh(Role.CHIEF), events.Begin())
    save_state = Store.save_state

    def is_killed(store: Store, name: str, state: states.JobState, **more: object) -> None:
        if more.get("answered"):
            monkeypatch.setattr(Store, "save_state", save_state)
            raise Killed
        save_state(store, name, state, **more)  # type: ignore[arg-type]

    folder = folders.RunFolder(tmp_path / "job")
    folder.create()
    run = Run(
        name="job", spec=begun.spec, source="", engine=LOCAL, directory=str(folder.path), submitted_at=0.0
    )
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        store.create_run(run, begun)
        store.save_state("job", begun, at=0.0)
        store.add_request("job", RESIZE, at=1.0)  # Without what it asks for: it can never be answered.
        store.add_request("job", STOP, at=2.0)

        def supervision() -> supervisions.Supervision:
            return supervisions.Supervision(
                "job", store=store, engine=Engine(), folder=folder, clock=lambda: 1.0, stopwatch=lambda: 1.0
            )

        monkeypatch.setattr(Store, "save_state", is_killed)
        with pytest.raises(Killed):
            supervision().run()
        assert len(store.requests("job")) == 2
        assert supervision().run() is JobPhase.STOPPED
        assert store.requests("job") == []
