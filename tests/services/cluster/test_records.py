"""A record survives being a status, whatever stands in it; a status that is damaged is refused."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from paceline.control.events import Timer, TimerKind
from paceline.control.reconciliations import ReconcileProgress
from paceline.control.states import JobState, ReplicaState
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.statuses import ExitKind, ExitReason, JobPhase, ReplicaPhase
from paceline.model.roles import ReplicaId, Role
from paceline.services.cluster import records
from paceline.services.cluster.records import JobRecord

SPEC = JobSpec(name="job", roles=(RoleSpec(role=Role.PS), RoleSpec(role=Role.WORKER, replicas=2)))
FINAL = [each for each in ReplicaPhase if each.is_final]
FORMER = (ReplicaId(Role.WORKER, 2), ReplicaId(Role.EVALUATOR, 0))
REASONS = st.none() | st.builds(
    ExitReason,
    kind=st.sampled_from(ExitKind),
    code=st.none() | st.integers(0, 255),
    signal=st.none() | st.integers(1, 64),
    message=st.text(max_size=8),
)


@st.composite
def all_records(draw: st.DrawFn) -> JobRecord:
    former = [each for each in FORMER if draw(st.booleans())]
    replicas = tuple(
        ReplicaState(
            replica=replica,
            phase=draw(st.sampled_from(list(ReplicaPhase) if SPEC.role(replica.role) else FINAL)),
            attempt=draw(st.integers(0, 99)),
            restarts=draw(st.integers(0, 99)),
            memory_bytes=draw(st.none() | st.integers(1, 2**50)),
            exit=draw(REASONS),
        )
        for replica in (*SPEC.replicas(), *former)
    )
    timers = {
        Timer(kind=draw(st.sampled_from(TimerKind)), replica=each.replica, attempt=each.attempt): draw(
            st.floats(0, 2**40)
        )
        for each in replicas
    }
    phase = draw(st.sampled_from(JobPhase))
    is_silent = phase in (JobPhase.PENDING, JobPhase.STARTING)  # The state machine gives them no message.
    state = JobState(
        spec=SPEC,
        phase=phase,
        replicas=replicas,
        outcome=draw(st.none() | st.sampled_from(JobPhase)),
        message="" if is_silent else draw(st.text(max_size=8)),
    )
    places = {replica: draw(st.sampled_from("ab")) for replica in SPEC.replicas() if draw(st.booleans())}
    return JobRecord(
        progress=ReconcileProgress(state=state, timers=timers),
        places=places,
        resumed=draw(st.text(max_size=4)),
        changed=draw(st.text(max_size=4)),
        resumes=draw(st.integers(0, 9)),
    )


def written(record: JobRecord, **before: Any) -> dict[str, Any]:
    status = json.loads(json.dumps(records.status(record, before, generation=3, now=1.8e9)))
    return {name: value for name, value in status.items() if value is not None}


@given(all_records())
def test_what_is_written_reads_back_equal(record: JobRecord) -> None:
    assert records.read(written(record), SPEC) == record


def test_who_lives_of_a_role_that_the_spec_lacks_is_not_taken_over() -> None:
    """A user deleted the snapshot: the job as its resource is now may have other roles."""
    lives = {"name": "evaluator-0", "phase": "running", "attempt": 1, "restarts": 0}
    found = written(records.new(SPEC))
    read = records.read({**found, "replicas": [*found["replicas"], lives]}, SPEC)
    assert read == records.new(SPEC)


def test_a_status_without_replicas_holds_no_record() -> None:
    assert records.read({}, SPEC) is None
    assert records.read({"phase": "pending"}, SPEC) is None
    assert records.read({"phase": "failed", "message": "the job is wrong"}, SPEC) is None


@pytest.mark.parametrize(
    "damage",
    [
        {"phase": "dancing"},
        {"phase": None},
        {"version": 2},
        {"version": "1"},
        {"replicas": 3},
        {"replicas": [{"name": "ps"}]},
        {"replicas": [{"name": "ps-0"}]},
        {"timers": [{"kind": "x", "due": 1}]},
        {"timers": [{"kind": "backoff"}]},
        {"replicas": [{"name": "ps-0", "phase": "running", "attempt": 1, "restarts": 0, "exit": {"x": 1}}]},
    ],
)
def test_a_status_that_cannot_be_gone_on_from_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(records.UnreadableStatus, match="the status of job cannot be read"):
        records.read({**written(records.new(SPEC)), **damage}, SPEC)


@pytest.mark.parametrize("phase", [each for each in JobPhase if each not in ("pending", "failed")])
def test_a_job_that_has_begun_and_lost_its_replicas_is_refused(phase: str) -> None:
    with pytest.raises(records.UnreadableStatus, match="has no replicas"):
        records.read({"phase": phase}, SPEC)


def test_a_status_without_a_version_is_of_the_first_one() -> None:
    found = written(records.new(SPEC))
    del found["version"]
    assert records.read(found, SPEC) == records.new(SPEC)


def test_what_is_said_of_an_unreadable_status_leaves_the_rest_as_it_is() -> None:
    before = {**written(records.new(SPEC)), "version": 2, "shards": [{"a": 1}]}
    error = records.UnreadableStatus("job", "its version is 2")
    once = records.unreadable(before, error, now=1.8e9)
    assert once.keys() == {"conditions"}
    assert once["conditions"][:-1] == before["conditions"]
    assert records.trouble({**before, **once}) == error.message
    assert records.unreadable({**before, **once}, error, now=1.9e9) == once
    assert records.trouble(before) == ""


def test_times_of_a_condition_stay_until_it_changes() -> None:
    before = written(records.new(SPEC))
    later = records.status(records.new(SPEC), before, generation=3, now=1.9e9)
    assert later["conditions"] == before["conditions"]
