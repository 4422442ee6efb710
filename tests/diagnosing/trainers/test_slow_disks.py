"""Stragglers that wait for their examples."""

from __future__ import annotations

from typing import Any

from support import cases
from support.cases import found

from paceline.diagnosing.inputs.slow_storage import slow_storage
from paceline.diagnosing.trainers.slow_disks import slow_disk
from paceline.diagnosing.trainers.slow_hosts import slow_host
from paceline.model.explanations.findings import Severity
from paceline.model.measures.recordings import Recording

SLOW = {**cases.STEPS, "steps": 20, "examples": 10_240, "input_wait_seconds": 0.5}
OWN = {"cpu_cores": 0.3, "cpu_limit_cores": 1.0}


def _recording(own: dict[str, Any] = OWN, slow: dict[str, Any] = SLOW, **more: Any) -> Recording:
    loads = {"ps-0": cases.SERVER, "worker-0": cases.TRAINER, "worker-1": own}
    steps = {"worker-0": cases.STEPS, "worker-1": slow}
    return cases.recording(loads, **{"steps": steps, **more})


def test_a_straggler_that_waits_for_input_is_found() -> None:
    recording = _recording(rows={"worker-1": {"host": "old"}})
    (cause,) = found(slow_disk, recording)
    assert cause.what == "worker-1 trains at 50% of the others' rate because it waits for examples."
    assert (cause.severity, cause.subjects) == (Severity.WARNING, ("worker-1", "old"))
    assert cause.evidence[1].text == "worker-1 waits 50% of its time for input, the others 2%"
    assert cause.next_steps[0].startswith("see how fast old reads")
    assert cause.gain is not None
    assert cause.gain.low > 1.1


def test_it_is_no_slow_host_and_no_slow_storage() -> None:
    assert not found(slow_host, _recording())
    assert not found(slow_storage, _recording())


def test_where_all_wait_it_is_not_its_disk() -> None:
    waiting = {**cases.STEPS, "input_wait_seconds": 0.4}
    assert not found(slow_disk, _recording(steps={"worker-0": waiting, "worker-1": SLOW}))


def test_one_that_decodes_meanwhile_lacks_cpu() -> None:
    own = {"cpu_cores": 0.39, "cpu_limit_cores": 0.4}
    assert not found(slow_disk, _recording(own))
    assert found(slow_host, _recording(own))


def test_a_wait_of_a_few_percent_is_that_of_any_run() -> None:
    assert not found(slow_disk, _recording(slow={**SLOW, "input_wait_seconds": 0.15}))


def test_one_whose_wait_is_not_measured_is_not_judged() -> None:
    assert not found(slow_disk, _recording(slow={**SLOW, "input_wait_seconds": None}))
