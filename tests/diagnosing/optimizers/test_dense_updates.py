"""An optimizer that updates every row of a table in each step."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from support import cases
from support.cases import found, trace

from paceline.diagnosing.cases import Case
from paceline.diagnosing.diagnoses import diagnose
from paceline.diagnosing.optimizers.dense_gradients import dense_gradient
from paceline.diagnosing.optimizers.dense_updates import dense_update
from paceline.diagnosing.situations import Situation
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.traces.traced_steps import Trace
from paceline.model.variables.variable_plans import PlacementRule, Plan, RowPartitioning, plan
from paceline.model.variables.variables import Variable

FULL = {"cpu_cores": 0.9, "cpu_limit_cores": 1.0}
RESTING = {"cpu_cores": 0.05, "cpu_limit_cores": 1.0}
WAITING = {"cpu_cores": 0.25, "cpu_limit_cores": 1.0}
LOADS = {"ps-0": FULL, "ps-1": FULL, "worker-0": WAITING, "worker-1": WAITING}
STEPS = {name: cases.STEPS | {"steps": 10} for name in ("worker-0", "worker-1")}
ADAM = {"training": {"optimizer": {"name": "adam"}}}
#: Kinds of operations as a trace of a real training with that optimizer has them.
OPERATIONS = {
    "adam": {
        "Mul": 14_000, "ReadVariableOp": 11_000, "AssignVariableOp": 11_000, "AssignSubVariableOp": 9_000,
        "Sqrt": 4_000, "RealDiv": 4_000, "AddV2": 3_000, "ResourceScatterAdd": 1_200, "ResourceGather": 130,
    },
    "lazy-adam": {
        "ResourceGather": 400, "ResourceScatterUpdate": 900, "ResourceScatterSub": 500, "Mul": 80, "Sqrt": 20,
    },
    "adagrad": {"ResourceGather": 130, "ResourceSparseApplyAdagradV2": 900},
    "a dense gradient": {"ResourceGather": 130, "ResourceApplyAdam": 40_000},
}  # fmt: skip
MOVED = {("ps-0", "deep/0"): 230_000, ("ps-1", "deep/1"): 230_000}


def traced(optimizer: str) -> Trace:
    computed: dict[tuple[str, str, str], float] = {
        (f"ps-{shard}", f"deep/{shard}", kind): time
        for shard in (0, 1)
        for kind, time in OPERATIONS[optimizer].items()
    }
    computed["ps-0", "kernel", "ResourceApplyAdam"] = 300
    computed["ps-0", "global_step", "AssignAddVariableOp"] = 5
    return trace(MOVED, pushed=MOVED, computed=computed)


def planned(rows: int = 700_000, slots: int = 2, name: str = "deep") -> Plan:
    table = Variable(name=name, shape=(rows, 16), sparse=True, slots=slots, step_bytes=488_400.0)
    kernel = Variable(name="kernel", shape=(429, 256), slots=slots, step_bytes=878_592.0)
    return plan((table, kernel), servers=2, cut=RowPartitioning(), rule=PlacementRule.BALANCED)


def recording(**more: Any) -> Any:
    return cases.recording(LOADS, **{"steps": STEPS, "spec": ADAM, "plan": planned(), **more})


def test_a_trace_shows_what_adam_costs() -> None:
    (cause,) = found(dense_update, recording(traces=(traced("adam"),)))
    assert cause.what == "Adam updates all 700,000 rows of deep in each step; a batch uses 3,700 of them."
    assert cause.severity is Severity.WARNING
    assert cause.subjects == ("deep", "ps-0", "ps-1")
    assert cause.changes == (FieldChange(path=("spec", "training", "optimizer", "name"), value="lazy-adam"),)
    assert cause.gain is not None
    # Trainers wait for 0.8 of a traced step, nearly all of it for whole tables.
    assert 2 < cause.gain.low <= cause.gain.high < 5
    assert [each.text for each in cause.evidence] == [
        "97% of the time of operations on PS is for whole tables: Mul, ReadVariableOp, AssignVariableOp, "
        "AssignSubVariableOp of deep",
        "PS use 0.90 of 1.00 cores each",
        "deep has 42.7 MiB without slots; a step of a trainer moves 477 KiB of it",
    ]
    assert (cause.evidence[0].sources[0].what, cause.evidence[0].sources[0].count) == ("traces", 1)


def test_without_a_trace_the_job_file_and_the_sizes_say_it() -> None:
    (cause,) = found(dense_update, recording())
    assert cause.changes == (FieldChange(path=("spec", "training", "optimizer", "name"), value="lazy-adam"),)
    assert cause.evidence[0].text == (
        "spec.training.optimizer.name is adam: 20.0 updates a second of 42.7 MiB take about 1.79 of the 1.80 "
        "cores that PS use"
    )
    assert cause.gain is not None


def test_a_script_of_the_users_own_is_told_what_it_can_do() -> None:
    (cause,) = found(dense_update, recording(traces=(traced("adam"),), spec={}, plan=None))
    assert cause.what == "The optimizer updates all rows of deep in each step."
    assert cause.changes == ()
    assert cause.next_steps[0].startswith("in your script: an optimizer that touches only rows")


def test_full_servers_and_waiting_follow_from_it() -> None:
    made = recording(traces=(traced("adam"),))
    situation = Situation.of(made.run, made.replicas, made.events, now=made.at)
    first = diagnose(made, situation).causes[0]
    assert first.name == "dense-update"
    assert [each.name for each in first.effects] == ["too-few-ps", "waiting-for-ps"]


@pytest.mark.parametrize("optimizer", ["lazy-adam", "adagrad", "a dense gradient"])
def test_what_a_trace_shows_to_take_rows_is_not_blamed_whatever_the_job_file_says(optimizer: str) -> None:
    assert not found(dense_update, recording(traces=(traced(optimizer),)))


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"spec": {"training": {"optimizer": {"name": "lazy-adam"}}}}, id="lazy-adam"),
        pytest.param({"spec": {"training": {}}}, id="adagrad by default"),
        pytest.param({"plan": planned(rows=3_000)}, id="a small table"),
        pytest.param({"plan": planned(name="wide/weights")}, id="a table of the other optimizer"),
        pytest.param({"steps": {name: cases.STEPS | {"steps": 0} for name in STEPS}}, id="no steps"),
        pytest.param({"steps": {name: cases.STEPS | {"steps": 1} for name in STEPS}}, id="steps are slow"),
    ],
)
def test_its_likes_are_not_it(more: dict[str, Any]) -> None:
    assert not found(dense_update, recording(**more))


def test_servers_at_rest_gain_nothing_from_less_work() -> None:
    loads = LOADS | dict.fromkeys(("ps-0", "ps-1"), RESTING)
    assert not found(dense_update, cases.recording(loads, steps=STEPS, spec=ADAM, plan=planned()))


def test_steps_that_share_an_exchange_share_an_update() -> None:
    training = {"optimizer": {"name": "adam"}, "steps_per_exchange": 10}
    assert not found(dense_update, recording(spec={"training": training}))


def test_synchronous_trainers_share_an_update() -> None:
    training = {"optimizer": {"name": "adam"}, "consistency": {"mode": "synchronous"}}
    (cause,) = found(dense_update, recording(spec={"training": training}))
    assert "10.0 updates a second" in cause.evidence[0].text


def test_without_sizes_or_a_trace_it_is_not_judged() -> None:
    assert dense_update.lacks(Case.of(recording(plan=None)))


def test_it_is_no_dense_gradient() -> None:
    assert not found(dense_gradient, recording(traces=(traced("adam"),)))


ADAM_OF_A_SESSION = ("Assign", "AssignSub", "ScatterAdd")


@pytest.mark.parametrize(
    ("updates", "is_dense"),
    [(ADAM_OF_A_SESSION, True), (("Adam",), True), (("SparseApplyAdagrad",), False),
     (("ScatterSub", "ScatterUpdate"), False), (("Adagrad",), False)],
)  # fmt: skip
def test_of_an_unchanged_script_the_operations_that_change_a_table_say_it(
    updates: tuple[str, ...], is_dense: bool
) -> None:
    """Without a trace, and whatever the job file says of an optimizer."""
    made = planned()
    shards = tuple(
        dataclasses.replace(
            shard,
            variable=dataclasses.replace(shard.variable, updates=updates, devices=("/job:ps/task:1",)),
        )
        for shard in made.shards
    )
    causes = found(dense_update, recording(plan=dataclasses.replace(made, shards=shards), spec={}))
    assert bool(causes) is is_dense
    for cause in causes:
        assert cause.subjects == ("deep", "ps-1")
        assert cause.changes == ()
        assert cause.next_steps[0].startswith("in your script:")
        assert cause.evidence[0].text.startswith(f"deep: {', '.join(updates)}: ")
