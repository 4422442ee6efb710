"""What is foretold of jobs whose scripts are seen: by where their variables are, and by cures."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
from support import cases
from support.cases import START

from paceline import specs
from paceline.errors import InvalidInput
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.runs import SEEN, JobEvent
from paceline.model.measures.recordings import Recording
from paceline.model.roles import ReplicaId
from paceline.model.studies.tunings import Objective
from paceline.model.variables import saved_plans
from paceline.model.variables.variable_plans import PlacementRule, RowPartitioning, plan
from paceline.model.variables.variables import Variable
from paceline.modelling.forecasts import Forecast
from paceline.services import variable_plans
from paceline.services.studying import predictions, proposals
from paceline.services.variable_plans import Alternative

COMMAND = ("python", "train.py")
#: Adam reads and writes 32 MB of it in each step; 1,000 ids of a batch are 100 rows, most of the first half.
TABLE = Variable(
    name="ids", shape=(500_000, 16), sparse=True, slots=2, step_bytes=1000 * (128.0 + 4), rows_used=100.0,
    row_shares=(0.8, 0.2), devices=("/job:ps/task:0",), updates=("Assign", "AssignSub", "ScatterAdd"),
)  # fmt: skip
KERNEL = Variable(name="kernel", shape=(16, 4), step_bytes=512.0, devices=("/job:ps/task:1",))
#: Ten steps a second of 20 ms: 0.64 of a core on the first server are for whole updates.
LOADS = {
    "ps-0": {"cpu_cores": 0.75, "cpu_limit_cores": 1.0},
    "ps-1": {"cpu_cores": 0.03, "cpu_limit_cores": 1.0},
    "worker-0": {"cpu_cores": 0.1, "cpu_limit_cores": 1.0},
}
_SECOND_IS_BUSY = LOADS | {"ps-0": LOADS["ps-1"], "ps-1": LOADS["ps-0"]}
CORES = {role: {"cpu_cores": 1.0} for role in ("ps", "worker")}


def job(
    *variables: Variable,
    training: Mapping[str, Any] | None = None,
    loads: Mapping[str, Mapping[str, Any]] = LOADS,
) -> Recording:
    made = cases.recording(
        loads, roles=CORES, steps={"worker-0": cases.STEPS | {"steps": 10, "examples": 640}},
        spec={"command": COMMAND, "training": training}, facts=(("cores", "8"),),
        plan=plan(
            variables or (TABLE, KERNEL), servers=2, cut=RowPartitioning(), rule=PlacementRule.BALANCED
        ),
    )  # fmt: skip
    source = specs.dump_job(made.run.spec)
    said = JobEvent(
        at=START,
        kind=SEEN,
        message="its steps, made by sessions",
        replica=ReplicaId.parse("worker-0"),
        attempt=1,
    )
    return dataclasses.replace(
        made, run=dataclasses.replace(made.run, source=source), events=[*made.events, said]
    )


def change(path: str, value: Any) -> FieldChange:
    return FieldChange(path=("spec", *path.split(".")), value=value)


def told(recording: Recording, **changes: Any) -> Forecast:
    asked = [change(path.replace("__", "."), value) for path, value in changes.items()]
    return predictions.forecast(predictions.model(recording), asked)


def test_the_model_goes_by_where_variables_are() -> None:
    first, second = predictions.model(job()).measured.layout.servers
    # As the job file would have it, both would have about half of it.
    assert (first.step_bytes, second.step_bytes) == (132_000.0, 512.0)
    assert (first.whole_bytes, second.whole_bytes) == (32e6, 0.0)


def test_lazy_adam_takes_the_updates_of_all_rows_from_the_servers() -> None:
    found = told(job(), training__optimizer__name="lazy-adam")
    assert found.now.binds == "cores of ps-0"
    assert found.low > 2
    with pytest.raises(InvalidInput, match="lazy-adam would change nothing"):
        told(job(dataclasses.replace(TABLE, slots=1), KERNEL), training__optimizer__name="lazy-adam")
    lazy = job(training={"optimizer": {"name": "lazy-adam"}})
    with pytest.raises(InvalidInput, match="without lazy-adam cannot be predicted"):
        told(lazy, training__optimizer=None)


def test_a_cut_table_is_updated_by_all_servers() -> None:
    found = told(job(), training__partitioning__strategy="fixed")
    assert found.times == pytest.approx(2, rel=0.3)
    # Its rows are all updated, so it does not matter that one half is hot.
    assert found.low < found.times < found.high


def test_by_size_the_table_alone_cannot_be_balanced() -> None:
    found = told(job(), training__variable_placement="greedy")
    assert found.times == pytest.approx(1, rel=0.05)


def test_unique_ids_move_fewer_rows() -> None:
    now = predictions.model(job())
    spec = dataclasses.replace(now.job.spec, training={"unique_ids": True})
    first = predictions.layout(now, spec).servers[0]
    assert first.step_bytes == 100 * (128 + 8)
    assert first.whole_bytes == 32e6


@pytest.mark.parametrize(
    ("training", "said"),
    [
        ({"steps_in_flight": 2}, "training.steps_in_flight cannot be predicted: no cure gives it"),
        ({"steps_per_execution": 10}, "a change of training.steps_per_execution"),
        ({"transfers": {"precision": "bfloat16"}}, "a change of training.transfers.precision"),
        ({"variable_placement": "traffic"}, "which plan the traffic makes"),
    ],
)
def test_what_is_not_known_is_said(training: Mapping[str, Any], said: str) -> None:
    now = predictions.model(job())
    with pytest.raises(InvalidInput, match=said):
        predictions.layout(now, dataclasses.replace(now.job.spec, training=training))


def test_what_changes_no_speed_is_foretold() -> None:
    assert told(job(), training__recovery_wait_seconds=1).times == 1.0
    assert told(job(), training__epochs=3).times == 1.0


def test_variables_that_are_on_no_server_are_said() -> None:
    lost = dataclasses.replace(TABLE, devices=("unplaced",))
    with pytest.raises(InvalidInput, match="no variable of the script is on a parameter server"):
        predictions.model(job(lost))


def test_a_saved_plan_is_obeyed_for_whole_variables() -> None:
    large = dataclasses.replace(KERNEL, name="second", step_bytes=9e4, devices=("/job:ps/task:0",))
    both = job(TABLE, KERNEL, large)
    by_traffic = _ways(both)["by-traffic"].plan
    assert by_traffic is not None
    wanted = {shard.name: shard.server for shard in by_traffic.shards}
    assert wanted["ids"] != wanted["second"]
    now = predictions.model(both)
    saved = saved_plans.write(by_traffic, traffic=False)
    obeyed = predictions.plan(now, dataclasses.replace(now.job.spec, training={"variable_plan": saved}))
    assert obeyed is not None
    assert {shard.name: shard.server for shard in obeyed.shards} == wanted


def test_ways_to_lay_out_a_script_begin_with_where_its_variables_are() -> None:
    found = _ways(job())
    assert tuple(found) == variable_plans.NAMES
    places = {
        name: [(s.name, s.server) for s in each.plan.shards] for name, each in found.items() if each.plan
    }
    assert places["job-file"] == [("ids", 0), ("kernel", 1)]
    assert places["partitioned"] == [("ids/0", 0), ("ids/1", 1), ("kernel", 0)]
    assert "training library alone" in found["balanced"].missing


def _ways(recording: Recording) -> dict[str, Alternative]:
    assert recording.plan is not None
    return {each.name: each for each in variable_plans.of_script(recording.run.spec, recording.plan)}


def test_what_is_proposed_goes_by_what_the_model_tells_of_cures() -> None:
    dense = {each.name: each for each in proposals.proposals(job(), Objective())}
    assert dense["dense-update"].expected > 2
    # What a step moves is little of what the first server does, so there is nothing in moving less.
    assert "unique-ids" not in dense
    moving = dataclasses.replace(TABLE, slots=1, updates=("ScatterAdd",), step_bytes=100_000 * (128.0 + 4))
    found = {each.name: each for each in proposals.proposals(job(moving, KERNEL), Objective())}
    assert found["unique-ids"].basis.startswith("the model of the job")
    assert found["unique-ids"].expected > 1.5


def test_shapes_keep_the_cures_that_lay_variables_out() -> None:
    # By size both busy variables are with the second server; in turn the first would have one of them.
    quiet = dataclasses.replace(TABLE, step_bytes=1000.0, slots=1, updates=("ScatterAdd",))
    busy = [
        Variable(name=name, shape=(1000, 1000), step_bytes=8e6, devices=("/job:ps/task:1",))
        for name in ("one", "two")
    ]
    recording = job(quiet, *busy, training={"variable_placement": "greedy"}, loads=_SECOND_IS_BUSY)
    found = [each for each in proposals.proposals(recording, Objective()) if each.name == "layout"]
    assert found
    assert not any("training" in change.path for each in found for change in each.changes)
