"""Samples, step reports and evaluations, in each kind of database."""

from __future__ import annotations

import dataclasses
import math

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import SHARED_FIXTURES, examples

from paceline import errors, stores
from paceline.model import roles
from paceline.model.jobs import runs
from paceline.model.measures import samples

PS0, PS1 = (roles.ReplicaId(roles.Role.PS, index) for index in range(2))
WORKER = roles.ReplicaId(roles.Role.WORKER, 0)

times = st.floats(0, 4e9)
counts = st.none() | st.integers(0, 2**63 - 1)
amounts = st.none() | st.floats(0, 1e12)
metrics = st.none() | st.floats().map(lambda value: value + 0.0)  # SQLite knows no -0.0
common = {"replica": st.sampled_from([PS0, PS1, WORKER]), "attempt": st.integers(1, 9), "at": times}
any_samples = st.builds(
    samples.Sample, **common, interval_seconds=times, cpu_cores=amounts, throttled_seconds=amounts,
    memory_bytes=counts, memory_limit_bytes=counts, network_sent_bytes=counts, voluntary_switches=counts,
    threads=counts, gpu_utilization=amounts, gpu_memory_bytes=counts,
)  # fmt: skip
any_reports = st.builds(
    samples.StepReport, **common, step=counts, steps=counts, examples=counts, loss=metrics,
    input_wait_seconds=amounts, all_reduce_seconds=amounts,
)  # fmt: skip
any_evaluations = st.builds(samples.EvaluationReport, **common, step=counts, auc=metrics, log_loss=metrics)


def sample(replica=PS0, at=1.0, **fields):
    return samples.Sample(replica=replica, attempt=1, at=at, interval_seconds=1.0, **fields)


def report(replica=WORKER, at=1.0, **fields):
    return samples.StepReport(replica=replica, attempt=1, at=at, **fields)


@settings(max_examples=examples(25), suppress_health_check=SHARED_FIXTURES)
@given(data=st.data())
def test_any_measurement_comes_back(store, make_run, data):
    for run in store.list_runs():
        store.delete_run(run.name)
    store.create_run(*make_run())
    measured = data.draw(st.lists(any_samples, max_size=6))
    reports = data.draw(st.lists(any_reports, max_size=6))
    evaluations = data.draw(st.lists(any_evaluations, max_size=6))
    store.append_samples("demo", measured)
    store.append_step_reports("demo", reports)
    store.append_evaluations("demo", evaluations)
    # repr, since NaN is not equal to itself
    for found, given_values in (
        (store.samples("demo"), measured),
        (store.step_reports("demo"), reports),
        (store.evaluations("demo"), evaluations),
    ):
        assert list(map(repr, found)) == list(map(repr, sorted(given_values, key=lambda value: value.at)))
    latest = {value.replica: value for value in sorted(measured, key=lambda value: value.at)}
    assert store.latest_samples("demo") == latest


def test_measurements_are_chosen_by_replica_role_and_time(filled):
    filled.append_samples(
        "demo", [sample(replica, at) for at in (3.0, 1.0, 2.0) for replica in (PS0, PS1, WORKER)]
    )
    assert [s.at for s in filled.samples("demo", replica=PS1)] == [1.0, 2.0, 3.0]
    assert {s.replica for s in filled.samples("demo", role=roles.Role.PS)} == {PS0, PS1}
    assert [s.at for s in filled.samples("demo", replica=PS0, since=2.0)] == [2.0, 3.0]
    assert [s.at for s in filled.samples("demo", replica=PS0, since=1.0, until=3.0)] == [1.0, 2.0]
    assert filled.samples("demo", replica=roles.ReplicaId(roles.Role.CHIEF, 0)) == []
    filled.append_step_reports("demo", [report(at=1.0, step=10), report(at=2.0, step=20)])
    assert [r.step for r in filled.step_reports("demo", role=roles.Role.WORKER, since=1.5)] == [20]
    filled.append_evaluations("demo", [samples.EvaluationReport(replica=WORKER, attempt=1, at=5.0, auc=0.75)])
    assert [e.auc for e in filled.evaluations("demo", until=6.0)] == [0.75]


def test_the_latest_of_each_replica(filled, make_run):
    filled.create_run(*make_run("other"))
    filled.append_samples("demo", [sample(PS0, 5.0, cpu_cores=0.5), sample(PS0, 4.0), sample(WORKER, 1.0)])
    filled.append_samples("other", [sample(PS0, 9.0), sample(PS1, 9.0)])
    assert filled.latest_samples("demo") == {
        PS0: sample(PS0, 5.0, cpu_cores=0.5),
        WORKER: sample(WORKER, 1.0),
    }
    filled.append_step_reports("demo", [report(at=2.0, step=7), report(at=2.0, step=8)])
    assert filled.latest_step_reports("demo") == {WORKER: report(at=2.0, step=8)}


def test_the_latest_samples_are_one_step_into_the_index_each(tmp_path, make_run):
    asked = []
    with stores.open_store(f"sqlite:///{tmp_path}/paceline.db") as store:
        store.create_run(*make_run())
        sa.event.listen(
            store._database._engine, "before_cursor_execute", lambda *call: asked.append(call[2:4])
        )
        store.latest_samples("demo")
        statement, parameters = asked[-1]
        with store._database.reading() as connection:
            plan = [
                row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            ]
    assert "SEARCH samples USING INTEGER PRIMARY KEY (rowid=?)" in plan
    assert any("USING COVERING INDEX samples_by_replica (replica_id=?)" in step for step in plan)
    assert not any(step.startswith("SCAN") for step in plan)


def test_not_measured_is_neither_zero_nor_nan(filled):
    filled.append_step_reports(
        "demo", [report(at=1.0), report(at=2.0, loss=0.0), report(at=3.0, loss=math.nan)]
    )
    first, second, third = (one.loss for one in filled.step_reports("demo"))
    assert first is None
    assert second == 0.0
    assert third is not None
    assert math.isnan(third)


def test_a_number_beyond_64_bits_is_not_measured(filled):
    filled.append_step_reports("demo", [report(step=2**63, examples=2**63 - 1)])
    (found,) = filled.step_reports("demo")
    assert (found.step, found.examples) == (None, 2**63 - 1)


def test_a_sample_of_an_unknown_replica_is_refused_with_all_others(filled):
    stranger = roles.ReplicaId(roles.Role.EVALUATOR, 3)
    with pytest.raises(errors.NotFound, match="job 'demo' has no replica evaluator-3"):
        filled.append_samples("demo", [sample(), sample(stranger)])
    assert filled.samples("demo") == []


def test_a_stretch_of_a_spool_is_stored_once(filled):
    stretch = {
        "samples": [sample()], "steps": [report()],
        "evaluations": [samples.EvaluationReport(replica=WORKER, attempt=1, at=1.0)],
        "events": [runs.JobEvent(at=1.0, kind="started", message="")],
    }  # fmt: skip
    assert filled.spool_offset("demo", PS0, 1) == 0
    filled.append_from_spool("demo", PS0, 1, previous_offset=0, offset=120, **stretch)
    assert filled.spool_offset("demo", PS0, 1) == 120
    with pytest.raises(errors.Conflict, match=r"stored up to byte 120, not 0"):
        filled.append_from_spool("demo", PS0, 1, previous_offset=0, offset=120, **stretch)
    filled.append_from_spool("demo", PS0, 1, previous_offset=120, offset=130, samples=[sample(at=2.0)])
    assert filled.spool_offset("demo", PS0, 1) == 130
    assert (filled.spool_offset("demo", PS0, 2), filled.spool_offset("demo", PS1, 1)) == (0, 0)
    assert [s.at for s in filled.samples("demo")] == [1.0, 2.0]
    assert (
        len(filled.step_reports("demo")) == len(filled.evaluations("demo")) == len(filled.events("demo")) == 1
    )


def test_what_a_coordinator_says_is_of_the_attempt_that_a_worker_is_at(filled, make_run):
    _, state = make_run()
    replicas = tuple(dataclasses.replace(each, attempt=3) for each in state.replicas)
    filled.save_state("demo", dataclasses.replace(state, replicas=replicas), at=5.0)
    told = dataclasses.replace(report(), attempt=samples.CURRENT_ATTEMPT)
    stranger = dataclasses.replace(told, replica=roles.ReplicaId(roles.Role.EVALUATOR, 3))
    filled.append_from_spool(
        "demo", PS0, 1, previous_offset=0, offset=9, steps=[told, stranger, report(at=2.0)]
    )
    assert [(each.replica, each.attempt) for each in filled.step_reports("demo")] == [
        (WORKER, 3),
        (WORKER, 1),
    ]


def test_a_stretch_that_cannot_be_stored_moves_nothing(filled):
    stranger = sample(roles.ReplicaId(roles.Role.CHIEF, 0))
    with pytest.raises(errors.NotFound):
        filled.append_from_spool("demo", PS0, 1, previous_offset=0, offset=9, samples=[sample(), stranger])
    assert filled.spool_offset("demo", PS0, 1) == 0
    assert filled.samples("demo") == []
