"""A sparse gradient that has become dense."""

from __future__ import annotations

from collections.abc import Mapping

from support import cases
from support.cases import found, trace

from paceline.diagnosing.optimizers.dense_gradients import dense_gradient
from paceline.diagnosing.optimizers.dense_updates import dense_update
from paceline.model.explanations.findings import Severity
from paceline.model.traces.traced_steps import Trace

FULL = {"cpu_cores": 0.9, "cpu_limit_cores": 1.0}
WAITING = {"cpu_cores": 0.25, "cpu_limit_cores": 1.0}
LOADS = {"ps-0": FULL, "ps-1": FULL, "worker-0": WAITING, "worker-1": WAITING}
KERNEL = {("ps-1", "kernel"): 400_000}
DENSE = {"ResourceGather": 100.0, "ResourceApplyAdagradV2": 9_000.0}


def traced(pulled: int, pushed: int, kinds: Mapping[str, float]) -> Trace:
    computed = {("ps-0", "ids", kind): time for kind, time in kinds.items()}
    computed["ps-1", "kernel", "ResourceApplyAdagradV2"] = 500.0
    return trace(
        {("ps-0", "ids"): pulled} | KERNEL, pushed={("ps-0", "ids"): pushed} | KERNEL, computed=computed
    )


def test_a_table_that_is_looked_up_by_rows_and_pushed_whole_is_named() -> None:
    (cause,) = found(dense_gradient, cases.recording(LOADS, traces=(traced(200_000, 8_000_000, DENSE),)))
    assert cause.what == "The gradient of ids has become one of all rows: 7.6 MiB in a step."
    assert (cause.severity, cause.subjects) == (Severity.WARNING, ("ids", "ps-0"))
    assert cause.changes == ()
    assert "tf.IndexedSlices" in cause.next_steps[0]
    assert [each.text for each in cause.evidence] == [
        "ids is looked up by rows, and updated by ResourceApplyAdagradV2, which takes all rows: 94% of the "
        "time of operations on PS",
        "a step of all trainers pushes 7.6 MiB of it and pulls 195 KiB",
    ]
    assert cause.gain is not None
    assert cause.gain.high > 1.5


def test_a_penalty_of_the_whole_table_is_it_too() -> None:
    read = DENSE | {"ReadVariableOp": 50.0}
    assert found(dense_gradient, cases.recording(LOADS, traces=(traced(8_000_000, 8_000_000, read),)))


def test_bytes_that_were_not_measured_leave_the_operations() -> None:
    computed = {("ps-0", "ids", kind): time for kind, time in DENSE.items()}
    (cause,) = found(dense_gradient, cases.recording(LOADS, traces=(trace({}, computed=computed),)))
    assert cause.what == "The gradient of ids has become one of all rows."


def test_a_gradient_of_rows_is_none() -> None:
    rows = {"ResourceGather": 100.0, "ResourceSparseApplyAdagradV2": 9_000.0}
    assert not found(dense_gradient, cases.recording(LOADS, traces=(traced(200_000, 200_000, rows),)))


def test_a_small_table_of_which_a_batch_uses_all_is_none() -> None:
    assert not found(dense_gradient, cases.recording(LOADS, traces=(traced(90_000, 100_000, DENSE),)))


def test_what_is_little_of_a_step_is_not_told() -> None:
    short = {"ResourceGather": 1.0, "ResourceApplyAdagradV2": 50.0}
    assert not found(dense_gradient, cases.recording(LOADS, traces=(traced(1_000, 60_000, short),)))


def test_a_weight_that_is_never_looked_up_is_none() -> None:
    dense = {"ReadVariableOp": 100.0, "ResourceApplyAdagradV2": 9_000.0}
    assert not found(dense_gradient, cases.recording(LOADS, traces=(traced(200_000, 8_000_000, dense),)))


def test_it_is_no_dense_update() -> None:
    recording = cases.recording(LOADS, traces=(traced(200_000, 8_000_000, DENSE),))
    assert not found(dense_update, recording)


def test_without_load_of_servers_it_is_told_and_gains_nothing_that_can_be_said() -> None:
    recording = cases.recording({name: {} for name in LOADS}, traces=(traced(200_000, 8_000_000, DENSE),))
    (cause,) = found(dense_gradient, recording)
    assert (cause.severity, cause.gain) == (Severity.WARNING, None)
