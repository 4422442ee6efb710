"""Servers on which the script has no variable."""

from __future__ import annotations

from typing import Any

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing import diagnoses
from paceline.diagnosing.cases import Case
from paceline.diagnosing.servers.unused_servers import no_variables_on_ps
from paceline.model.explanations.findings import Severity
from paceline.model.measures.recordings import Recording
from paceline.model.variables.variable_plans import PlacementRule, RowPartitioning, plan
from paceline.model.variables.variables import Variable

IDLE = {"cpu_cores": 0.01, "cpu_limit_cores": 1.0, "network_received_bytes": 40, "network_sent_bytes": 40}
WORKS = {"cpu_cores": 0.9, "cpu_limit_cores": 1.0, "network_received_bytes": 60, "network_sent_bytes": 60}
LOADS = {"ps-0": IDLE, "ps-1": IDLE, "worker-0": WORKS, "worker-1": WORKS}


def described(*devices: str, **more: Any) -> Recording:
    variables = [
        Variable(name=f"v{number}", shape=(1000, 4), devices=(device,) if device else ())
        for number, device in enumerate(devices)
    ]
    asked = plan(variables, servers=2, cut=RowPartitioning(), rule=PlacementRule.BALANCED)
    return cases.recording(LOADS, plan=asked, **more)


@pytest.mark.parametrize("device", ["unplaced", "/job:worker/task:0", "/job:localhost/replica:0/task:0"])
def test_variables_that_are_all_with_trainers_are_told_of(device: str) -> None:
    (cause,) = found(no_variables_on_ps, described(device, device))
    assert cause.what == "ps-0, ps-1 hold no variable: they are all with the trainers."
    assert cause.severity is Severity.WARNING
    assert cause.evidence[0].text == f"TensorFlow has v0, v1 (31.2 KiB in all) on: {device}"
    assert "replica_device_setter" in cause.next_steps[0]


def test_one_on_a_server_is_enough() -> None:
    assert not found(no_variables_on_ps, described("unplaced", "/job:ps/task:1"))


def test_where_variables_are_not_known_only_silence_on_the_wire_says_so() -> None:
    (cause,) = found(no_variables_on_ps, cases.recording(LOADS, steps={}, seconds=120))
    assert cause.what == (
        "ps-0, ps-1 exchange nothing with trainers that work: it looks as if they held no variable."
    )
    talking = LOADS | {"ps-1": IDLE | {"network_sent_bytes": 40_000}}
    assert not found(no_variables_on_ps, cases.recording(talking, steps={}, seconds=120))
    resting = LOADS | dict.fromkeys(("worker-0", "worker-1"), WORKS | {"cpu_cores": 0.05})
    assert not found(no_variables_on_ps, cases.recording(resting, steps={}, seconds=120))
    beginning = cases.recording(LOADS, steps={}, seconds=60)
    assert not found(no_variables_on_ps, beginning)
    unmeasured = {
        name: {key: value for key, value in load.items() if not key.startswith("network")}
        for name, load in LOADS.items()
    }
    assert not found(no_variables_on_ps, cases.recording(unmeasured, steps={}, seconds=120))


def test_a_worker_that_waits_for_ever_follows_from_it() -> None:
    loads = LOADS | {"worker-1": IDLE}
    recording = described("unplaced", "unplaced", steps={"worker-0": cases.STEPS})
    recording = cases.recording(loads, steps={"worker-0": cases.STEPS}, plan=recording.plan)
    (cause, *_) = diagnoses.slowing(Case.of(recording))
    assert cause.name == "no-variables-on-ps"
    assert "idle-workers" in [each.name for each in cause.effects]


def test_a_job_without_servers_needs_none() -> None:
    recording = described("unplaced")
    alone = cases.recording({"worker-0": WORKS}, plan=recording.plan)
    assert not found(no_variables_on_ps, alone)
