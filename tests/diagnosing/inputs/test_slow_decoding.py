"""All trainers wait for decoding."""

from __future__ import annotations

from typing import Any

from support import cases
from support.cases import found

from paceline.diagnosing.inputs.slow_decoding import slow_decoding
from paceline.diagnosing.inputs.slow_storage import slow_storage
from paceline.diagnosing.trainers.compute_bounds import compute_bound
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import Framework
from paceline.model.measures.recordings import Recording

BUSY = {"cpu_cores": 0.97, "cpu_limit_cores": 1.0}
WORKERS = ("worker-0", "worker-1")
CPU = {"worker": {"cpu_cores": 1.0}}


def _recording(
    wait: float, load: dict[str, Any] = BUSY, server: dict[str, Any] = cases.SERVER, **more: Any
) -> Recording:
    steps = {name: {**cases.STEPS, "input_wait_seconds": wait} for name in WORKERS}
    loads = {"ps-0": server, **dict.fromkeys(WORKERS, load)}
    return cases.recording(loads, steps=steps, **more)


def test_trainers_that_wait_and_work_are_found() -> None:
    (cause,) = found(slow_decoding, _recording(0.4, roles=CPU))
    assert cause.what == (
        "Trainers wait for decoding: 40% of their time they have no examples, though their cores are busy."
    )
    assert (cause.severity, cause.subjects) == (Severity.WARNING, WORKERS)
    assert cause.evidence[1].text == "meanwhile their cores are busy: 97% are used on average"
    # 1 / (1 - 0.4) of the cores, in tenths.
    assert cause.changes == (FieldChange(path=("spec", "roles", "worker", "cpu"), value=1.7),)


def test_loaders_of_pytorch_have_ways_of_their_own() -> None:
    (cause,) = found(slow_decoding, _recording(0.4, spec={"framework": Framework.PYTORCH}))
    assert not any("TensorFlow" in each for each in cause.next_steps)
    assert any("collate_fn" in each for each in cause.next_steps)


def test_at_most_four_times_the_cores_are_proposed() -> None:
    (cause,) = found(slow_decoding, _recording(0.9, roles=CPU))
    assert cause.changes[0].value == 4.0
    assert cause.gain is not None
    assert cause.gain.high <= 4.0


def test_cores_that_the_job_file_does_not_give_are_not_changed() -> None:
    (cause,) = found(slow_decoding, _recording(0.4))
    assert cause.changes == ()
    assert "Parquet" in cause.next_steps[0]


def test_cores_of_a_machine_that_all_share_are_busy_together() -> None:
    recording = _recording(0.5, {"cpu_cores": 0.9}, facts=(("cores", "2"),))
    assert found(slow_decoding, recording)
    assert not found(slow_storage, recording)


def _burdened(cpu_seconds: float, load: dict[str, Any] = BUSY) -> Recording:
    steps = {name: {**cases.STEPS, "input_cpu_seconds": cpu_seconds} for name in WORKERS}
    return cases.recording({"ps-0": cases.SERVER, **dict.fromkeys(WORKERS, load)}, steps=steps, roles=CPU)


def test_who_never_waits_may_decode_most_of_the_time() -> None:
    (cause,) = found(slow_decoding, _burdened(0.6))
    assert cause.what == (
        "Decoding takes 62% of the CPU time of the trainers, whose cores are at their limit."
    )
    assert (cause.severity, cause.subjects) == (Severity.WARNING, WORKERS)
    assert cause.gain is not None
    assert 1.0 < cause.gain.low < cause.gain.high <= 1 / (1 - 0.62)
    assert cause.changes == (FieldChange(path=("spec", "roles", "worker", "cpu"), value=2.7),)
    assert not found(compute_bound, _burdened(0.6))


def test_a_little_decoding_is_part_of_computing() -> None:
    assert not found(slow_decoding, _burdened(0.1))
    assert found(compute_bound, _burdened(0.1))


def test_decoding_on_cores_that_rest_costs_nothing() -> None:
    assert not found(slow_decoding, _burdened(0.6, {"cpu_cores": 0.8, "cpu_limit_cores": 1.0}))


def test_the_limit_lies_between_rest_and_work() -> None:
    # Of one that waits for 60 %, storage leaves at least 60 % idle, decoding none.
    assert not found(slow_decoding, _recording(0.6, {"cpu_cores": 0.68, "cpu_limit_cores": 1.0}))
    assert found(slow_decoding, _recording(0.6, {"cpu_cores": 0.72, "cpu_limit_cores": 1.0}))


def test_it_is_no_storage_and_not_computing() -> None:
    assert not found(slow_storage, _recording(0.4))
    assert not found(compute_bound, _recording(0.4))


def test_busy_trainers_that_do_not_wait_compute() -> None:
    assert not found(slow_decoding, _recording(0.05))
    assert found(compute_bound, _recording(0.05))


def test_who_was_not_measured_is_not_judged() -> None:
    assert not found(slow_decoding, _recording(0.4, {"cpu_cores": 0.97}))


def test_a_shorter_wait_counts_where_cores_are_full() -> None:
    recording = _recording(0.12)
    assert found(slow_decoding, recording)
    assert not found(compute_bound, recording)
    assert not found(slow_decoding, _recording(0.12, {"cpu_cores": 0.8, "cpu_limit_cores": 1.0}))


def test_busy_servers_leave_less_to_gain() -> None:
    idle, busy = (_recording(0.4, server={"cpu_cores": use, "cpu_limit_cores": 1.0}) for use in (0.1, 0.9))
    (first,), (second,) = found(slow_decoding, idle), found(slow_decoding, busy)
    assert first.gain is not None
    assert second.gain is not None
    assert second.gain.high < 1.2 < first.gain.high
