"""Cures that are proposed for what was measured, where no cause proposes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from support import cases
from support.cases import START

from paceline.diagnosing.cases import Case
from paceline.model.jobs.job_specs import Host
from paceline.model.jobs.runs import SEEN, JobEvent
from paceline.model.measures.recordings import Recording
from paceline.model.studies.proposals import Proposal
from paceline.model.variables.variable_plans import PlacementRule, Plan, RowPartitioning, plan
from paceline.model.variables.variables import Variable
from paceline.tuning import cure_moves

BUSY, RESTING = {"cpu_cores": 0.95, "cpu_limit_cores": 1.0}, {"cpu_cores": 0.2, "cpu_limit_cores": 1.0}
LOADS = {"ps-0": BUSY, "ps-1": BUSY, "worker-0": RESTING, "worker-1": RESTING}
SESSIONS, KERAS = "its steps, made by sessions; batch: fed", "its steps, as Adam counts them; batch: not seen"


def planned(rows_used: float | None = 100.0) -> Plan:
    """1,000 ids of a batch are 100 rows."""
    table = Variable(
        name="ids", shape=(100_000, 16), sparse=True, step_bytes=1000 * 132.0, rows_used=rows_used,
        devices=("/job:ps/task:0",), value_type="float32",
    )  # fmt: skip
    return plan((table,), servers=2, cut=RowPartitioning(), rule=PlacementRule.BALANCED)


def job(
    loads: Mapping[str, Mapping[str, Any]] = LOADS, *, says: str | None = SESSIONS, **more: Any
) -> Recording:
    made = cases.recording(loads, **{"plan": planned(), **more})
    said = [
        JobEvent(at=START, kind=SEEN, message=says, replica=each.replica, attempt=1)
        for each in made.replicas
        if says is not None and each.replica.role.trains
    ]
    return dataclasses.replace(made, events=[*made.events, *said])


def proposed(recording: Recording) -> dict[str, Proposal]:
    return {each.name: each for each in cure_moves.proposals(Case.of(recording))}


def values(found: Sequence[Proposal]) -> dict[str, Any]:
    return {".".join(change.path[2:]): change.value for each in found for change in each.changes}


def test_ids_that_repeat_are_made_unique() -> None:
    found = proposed(job())["unique-ids"]
    assert values([found]) == {"unique_ids": True}
    assert found.gain is not None
    assert found.gain.low == 1.0
    assert found.gain.high > 1.5
    assert "90% of the bytes of a step" in found.what


@pytest.mark.parametrize(
    "recording",
    [
        pytest.param(job(says=None), id="the script is not seen"),
        pytest.param(job(says=KERAS), id="the cure is for sessions"),
        pytest.param(job(plan=planned(rows_used=980.0)), id="ids do not repeat"),
        pytest.param(job(plan=planned(rows_used=None)), id="not measured"),
        pytest.param(job(plan=None), id="nothing is known of variables"),
        pytest.param(job(spec={"training": {"unique_ids": True}}), id="asked for already"),
    ],
)
def test_ids_are_left_alone(recording: Recording) -> None:
    assert "unique-ids" not in proposed(recording)


def keras(*, steps: int = 100, cores: float = 0.2, fits: bool = True) -> Recording:
    worker = {"cpu_cores": cores, "cpu_limit_cores": 1.0}
    made = job(
        {"ps-0": RESTING, "worker-0": worker}, says=KERAS,
        steps={"worker-0": cases.STEPS | {"steps": steps, "input_wait_seconds": None}},
    )  # fmt: skip
    return cases.asking(made, {"worker-0": {"model_fit": True}}) if fits else made


def test_short_steps_of_keras_are_made_several_at_once() -> None:
    found = proposed(keras())["steps-per-execution"]
    assert values([found]) == {"steps_per_execution": 10}
    assert found.gain is not None
    # Computing takes 0.2 of a step; of the rest nine tenths are spared at most.
    assert 1.5 < found.gain.high <= 1 / 0.28 + 1e-9


@pytest.mark.parametrize(
    "recording",
    [
        pytest.param(keras(steps=10), id="steps are long"),
        pytest.param(keras(cores=0.8), id="trainers compute"),
        pytest.param(keras(fits=False), id="no Model.fit"),
    ],
)
def test_steps_stay_one_by_one(recording: Recording) -> None:
    assert "steps-per-execution" not in proposed(recording)


def waiting(
    *, cores: float = 4.0, used: float = 1.0, prefetches: bool | None = False, share: float = 0.5
) -> Recording:
    worker = {"cpu_cores": used, "cpu_limit_cores": cores}
    made = job(
        {"ps-0": RESTING, "worker-0": worker},
        steps={"worker-0": cases.STEPS | {"input_wait_seconds": share}},
    )
    return made if prefetches is None else cases.asking(made, {"worker-0": {"prefetches": prefetches}})


def test_batches_are_made_ahead_and_examples_decoded_at_once() -> None:
    found = proposed(waiting())
    assert set(found) >= {"prefetch", "parallel-map"}
    gain = found["prefetch"].gain
    assert gain is not None
    # Half of the time is waiting: at most both go on at once.
    assert 1.5 < gain.high <= 2.0


@pytest.mark.parametrize(
    ("recording", "expected"),
    [
        pytest.param(waiting(prefetches=True), {"parallel-map"}, id="it makes them ahead already"),
        pytest.param(waiting(cores=1.0, used=0.5), {"prefetch"}, id="one core decodes one at a time"),
        pytest.param(waiting(used=3.9), {"prefetch"}, id="no core rests"),
        pytest.param(waiting(share=0.02), set(), id="nothing is waited for"),
        pytest.param(waiting(prefetches=None), set(), id="it has no tf.data"),
    ],
)
def test_what_fits_the_input(recording: Recording, expected: set[str]) -> None:
    assert {"prefetch", "parallel-map"} & set(proposed(recording)) == expected


def linked(bits_per_second: int) -> Recording:
    """Rows go over a link of two hosts, so fast that the trainers' steps move 9 MB a second."""
    moved = {"network_received_bytes": 5_280_000, "network_sent_bytes": 5_280_000}
    hosts = (
        Host(name="a", bandwidth_bits_per_second=bits_per_second),
        Host(name="b", bandwidth_bits_per_second=10**10),
    )
    return job(
        {"ps-0": RESTING | moved, "worker-0": RESTING | moved, "worker-1": RESTING | moved},
        spec={"hosts": hosts},
        rows={"ps-0": {"host": "a"}, "worker-0": {"host": "b"}, "worker-1": {"host": "b"}},
        plan=planned(rows_used=None),
    )  # fmt: skip


def test_a_link_that_binds_is_sent_half_the_bytes() -> None:
    found = proposed(linked(50_000_000))["transfer-precision"]
    assert values([found]) == {"transfers.precision": "bfloat16"}
    assert found.relearns
    assert found.gain is not None
    assert 1.3 < found.gain.high <= 2.0
    assert "transfer-precision" not in proposed(linked(10**9))


def test_each_says_its_risk_and_promises_nothing_at_least() -> None:
    found = [*proposed(job()).values(), *proposed(keras()).values(), *proposed(waiting()).values()]
    assert found
    assert all(each.risk and each.gain is not None and each.gain.low == 1.0 for each in found)
