"""What a snapshot makes of the rows of a store."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.runs import ReplicaRow, Run
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures import snapshots
from paceline.model.measures.samples import EvaluationReport, Sample, StepReport
from paceline.model.roles import ReplicaId, Role

PS0, PS1, W0, W1 = (ReplicaId(role, index) for role in (Role.PS, Role.WORKER) for index in (0, 1))
ROLES = (RoleSpec(role=Role.PS, replicas=2), RoleSpec(role=Role.WORKER, replicas=2))


def run(phase: JobPhase = JobPhase.RUNNING, **training: int) -> Run:
    spec = JobSpec(name="job", roles=ROLES, training=training or None)
    return Run(
        name="job", spec=spec, source="", engine="local", directory="/d", submitted_at=0, phase=phase,
        started_at=10.0,
    )  # fmt: skip


def rows(phase: ReplicaPhase = ReplicaPhase.RUNNING, attempt: int = 1) -> list[ReplicaRow]:
    return [ReplicaRow(replica=r, phase=phase, attempt=attempt, restarts=0) for r in (PS0, PS1, W0, W1)]


def sample(replica: ReplicaId, at: float = 20.0, attempt: int = 1, **values: Any) -> Sample:
    return Sample(replica=replica, attempt=attempt, at=at, **{"interval_seconds": 1.0, **values})


def report(replica: ReplicaId, at: float = 20.0, attempt: int = 1, **values: Any) -> StepReport:
    return StepReport(replica=replica, attempt=attempt, at=at, **{"interval_seconds": 1.0, **values})


def by_replica(snapshot: snapshots.Snapshot) -> dict[ReplicaId, snapshots.ReplicaSnapshot]:
    return {replica.replica: replica for replica in snapshot.replicas}


def test_nothing_measured_is_none_everywhere() -> None:
    found = snapshots.joined(run(), rows(), at=20.0)
    for replica in found.replicas:
        values = dataclasses.asdict(replica)
        del values["row"]
        assert set(values.values()) == {None}
        assert replica.network_bytes_per_second is None
    assert [role.imbalances for role in found.roles] == [(), ()]
    assert (found.step, found.progress, found.eta_seconds, found.examples_per_second) == (None,) * 4
    assert found.elapsed_seconds == 10.0


def switches(voluntary: int, involuntary: int) -> dict[str, int]:
    return {"voluntary_switches": voluntary, "involuntary_switches": involuntary}


def test_rates_weigh_samples_by_their_time() -> None:
    found = snapshots.joined(
        run(), rows(), at=20.0,
        samples=[
            sample(PS0, 18, cpu_cores=1.0, interval_seconds=3, network_sent_bytes=300, **switches(4, 2)),
            sample(PS0, 19, cpu_cores=0.0, memory_bytes=100, network_sent_bytes=100, **switches(0, 2)),
            sample(PS0, 20, memory_bytes=90, throttled_seconds=0.5, voluntary_switches=7),
        ],
    )  # fmt: skip
    ps = by_replica(found)[PS0]
    assert ps.cpu_cores == 0.75
    assert ps.sent_bytes_per_second == 100.0
    assert ps.received_bytes_per_second is None
    assert ps.network_bytes_per_second == 100.0
    assert ps.switches_per_second == 2.0
    assert ps.throttled_share == 0.5
    assert (ps.memory_bytes, ps.measured_at) == (90, 20)


def test_memory_of_a_whole_run_is_its_highest() -> None:
    samples = [sample(PS0, 18, memory_bytes=100), sample(PS0, 19, memory_bytes=90)]
    found = snapshots.joined(run(JobPhase.SUCCEEDED), rows(ReplicaPhase.SUCCEEDED), samples=samples, at=20)
    assert found.whole_run
    assert by_replica(found)[PS0].memory_bytes == 100


def test_other_attempts_and_dead_replicas_say_nothing_of_now() -> None:
    samples = [sample(PS0, attempt=1, cpu_cores=1.0)]
    assert by_replica(snapshots.joined(run(), rows(attempt=2), samples=samples, at=20))[PS0].cpu_cores is None
    dead = rows(ReplicaPhase.BACKING_OFF)
    assert by_replica(snapshots.joined(run(), dead, samples=samples, at=20))[PS0].cpu_cores is None
    ended = snapshots.joined(run(JobPhase.FAILED), rows(attempt=2), samples=samples, at=20)
    assert by_replica(ended)[PS0].cpu_cores == 1.0


def test_roles_are_sorted_by_load_and_name_the_hot_replica() -> None:
    samples = [sample(PS0, cpu_cores=0.1), sample(PS1, cpu_cores=0.9), sample(W0, cpu_cores=1.0)]
    ps, worker = snapshots.joined(run(), rows(), samples=samples, at=20).roles
    assert [replica.replica for replica in ps.replicas] == [PS1, PS0]
    (imbalance,) = ps.imbalances
    assert (imbalance.resource, imbalance.hot) == ("CPU", PS1)
    assert imbalance.max_over_mean == pytest.approx(1.8)
    assert imbalance.gini == pytest.approx(0.4)
    assert ps.hot == PS1
    assert ps.cpu_cores == pytest.approx(1.0)
    assert worker.imbalances == ()


def test_idle_role_has_no_hot_replica() -> None:
    samples = [sample(PS0, cpu_cores=0.001), sample(PS1, cpu_cores=0.0), sample(W0, cpu_cores=1.0)]
    ps, _ = snapshots.joined(run(), rows(), samples=samples, at=20).roles
    assert ps.imbalances[0].hot is None


def test_progress_and_eta_come_from_the_global_step() -> None:
    steps = [
        report(W0, 18, step=100, steps=5, examples=50, loss=0.9, input_wait_seconds=0.2, total_steps=1000),
        report(W1, 19, step=110, steps=5, examples=50, loss=0.8, all_reduce_seconds=0.4),
        report(W0, 20, step=120, steps=5, examples=70, loss=0.7, total_steps=1000),
    ]
    found = snapshots.joined(run(), rows(), steps=steps, latest_steps=steps[1:], at=20)
    assert (found.step, found.total_steps, found.progress) == (120, 1000, 0.12)
    assert found.steps_per_second == 10.0
    assert found.eta_seconds == 88.0
    assert found.examples_per_second == 110.0
    assert found.loss == 0.7
    workers = by_replica(found)
    assert (workers[W0].steps_per_second, workers[W0].input_wait_share) == (5.0, 0.2)
    assert (workers[W1].loss, workers[W1].step) == (0.8, 110)
    assert (workers[W0].all_reduce_share, workers[W1].all_reduce_share) == (None, 0.4)
    assert dataclasses.replace(found, lost=True).eta_seconds is None


def test_wanted_steps_come_from_the_job_until_reported() -> None:
    assert snapshots.joined(run(max_steps=500), rows(), at=20).total_steps == 500
    steps = [report(W0, step=5, total_steps=400)]
    assert snapshots.joined(run(max_steps=500), rows(), latest_steps=steps, at=20).total_steps == 400


def test_a_step_that_went_back_is_the_smaller_one_and_has_no_rate_yet() -> None:
    steps = [report(W0, 18, step=100), report(W0, 20, step=40)]
    found = snapshots.joined(run(), rows(), steps=steps, latest_steps=steps[1:], at=20)
    assert (found.step, found.steps_per_second, found.eta_seconds) == (40, None, None)


def test_after_a_restore_step_rate_and_eta_are_of_what_came_after_it() -> None:
    """W1 is gone since; what it said last was before the restore."""
    steps = [
        report(W0, 100, step=900), report(W1, 101, step=1000, total_steps=2000), report(W0, 110, step=1090),
        report(W0, 150, step=400, total_steps=1400), report(W0, 160, step=500, total_steps=1400),
    ]  # fmt: skip
    recent = [each for each in steps if each.at > 130]
    found = snapshots.joined(run(), rows(), steps=recent, latest_steps=[steps[1], steps[-1]], at=161)
    assert (found.step, found.total_steps, found.steps_per_second) == (500, 1400, 10.0)
    assert found.eta_seconds == 90.0
    whole = snapshots.joined(run(JobPhase.SUCCEEDED), rows(), steps=steps, at=161)
    assert (whole.step, whole.steps_per_second) == (500, 10.0)


def test_a_node_that_is_an_hour_ahead_changes_no_rate() -> None:
    steps = [
        report(W0, 10, step=100), report(W0, 20, step=200),
        report(W1, 3610, step=100), report(W1, 3620, step=200),
    ]  # fmt: skip
    assert snapshots.joined(run(), rows(), steps=steps, at=21).steps_per_second == 10.0


def test_a_clock_that_was_set_changes_no_rate() -> None:
    ahead = [
        report(W0, at, step=step, interval_seconds=10.0) for at, step in ((10, 100), (20, 200), (4000, 300))
    ]
    assert snapshots.joined(run(), rows(), steps=ahead, at=21).steps_per_second == 10.0


def test_the_latest_evaluation_counts() -> None:
    evaluations = [EvaluationReport(replica=W0, attempt=1, at=at, auc=at / 100) for at in (1.0, 2.0)]
    found = snapshots.joined(run(), rows(), evaluations=evaluations, at=20)
    assert found.evaluation is evaluations[1]


@given(
    st.lists(
        st.builds(
            sample,
            st.sampled_from([PS0, PS1, W0]),
            interval_seconds=st.floats(0, 1e6),
            cpu_cores=st.none() | st.floats(0, 1e4),
            network_sent_bytes=st.none() | st.integers(0, 2**62),
        ),
        max_size=8,
    )
)
def test_any_samples_make_sound_numbers(samples: list[Sample]) -> None:
    for role in snapshots.joined(run(), rows(), samples=samples, at=20).roles:
        for replica in role.replicas:
            assert replica.cpu_cores is None or 0 <= replica.cpu_cores <= 1e4 * 1.001
        for imbalance in role.imbalances:
            assert imbalance.max_over_mean * 1.000001 >= 1
            assert -1e-9 <= imbalance.gini < 1
