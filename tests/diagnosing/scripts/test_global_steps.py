"""A busy server whose load no variable explains."""

from __future__ import annotations

import pytest
from support import cases
from support.cases import found, trace

from paceline.diagnosing.scripts.global_steps import global_step_server
from paceline.model.explanations.findings import Severity
from paceline.model.measures.recordings import Recording

BUSY = {"cpu_cores": 0.8, "cpu_limit_cores": 1.0}
REST = {"cpu_cores": 0.1, "cpu_limit_cores": 1.0}
LOADS = {"ps-0": BUSY, "ps-1": REST, "ps-2": REST, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}


def placed(device: str, first: int = 1000, **loads: dict[str, float]) -> Recording:
    moved = {("ps-0", "a"): first, ("ps-1", "b"): 1000, ("ps-2", "c"): 1000}
    recording = cases.recording(LOADS | loads, traces=(trace(moved, pushed=moved),))
    return cases.asking(recording, {"worker-0": {"global_step_device": device}})


@pytest.mark.parametrize("device", ["/job:ps/task:0", "/job:ps/replica:0/task:0/device:CPU:0"])
def test_the_server_with_the_global_step_is_named(device: str) -> None:
    (cause,) = found(global_step_server, placed(device))
    assert (cause.severity, cause.subjects, cause.gain) == (Severity.INFO, ("ps-0",), None)
    assert cause.evidence[-1].text == "2 trainers change it 80 times a second"
    assert '"/job:ps/task:1"' in cause.next_steps[0]


@pytest.mark.parametrize(
    "recording",
    [placed("/job:ps/task:1"), placed("/job:worker/task:0"), placed("/job:ps/task:0", first=50_000)],
    ids=["another server has it", "a worker has it", "a variable explains it"],
)
def test_nothing_else_is(recording: Recording) -> None:
    assert found(global_step_server, recording) == ()


def test_a_server_that_was_not_measured_is_not_said_to_rest() -> None:
    unmeasured = {"ps-1": {"memory_bytes": 1 << 20}}
    (cause,) = found(global_step_server, placed("/job:ps/task:0", **unmeasured))
    assert '"/job:ps/task:2"' in cause.next_steps[0]
