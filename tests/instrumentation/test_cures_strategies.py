"""Cures of a ``ParameterServerStrategy``: variables lie elsewhere or in parts, and it learns the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support import nights
from support.cured import result, said

pytestmark = pytest.mark.slow
SCRIPT = "strategy.py"
_KERAS = "tensorflow.keras"
#: TensorFlow, the package of Keras; before 2.5 its ``fit`` knows no such strategy.
FITTING = [(None, "tf_keras"), ("2.8.4", _KERAS), ("2.11.1", _KERAS), ("2.15.1", _KERAS)]
LOOPING = ["2.4.4", None, "2.8.4", "2.15.1"]
BOTH = {
    "variable_placement": "greedy",
    "partitioning": {"strategy": "min-size", "min_shard_bytes": 8192},
}


def server(device: str) -> str:
    return re.search(r"task:(\d+)", device).group(1)


@pytest.mark.parametrize(("version", "keras"), nights.but(FITTING, often=FITTING[:1]))
def test_tables_are_cut_and_placed_by_size(runner, version, keras):
    path = str(runner.folder / "saved" / "model")
    cured = result(runner, version, SCRIPT, "--keras", keras, "--save", path, training=BOTH, servers=2)
    outcomes = {(name, outcome) for name, outcome, _ in said(runner)}
    assert outcomes == {("variable-placement", "applied"), ("partitioning", "applied")}
    assert ("partitioning", "applied", "[4000, 4] in 2 parts") in said(runner)
    places = {name.split(":")[0]: server(device) for name, device in cured["places"].items()}
    # The parts have 32,000 bytes each, so the rest goes to one server and then to the other.
    assert places == {
        "large/embeddings/part_0": "0", "large/embeddings/part_1": "1", "small/embeddings": "0",
        "dense/kernel": "1", "dense/bias": "1",
    }  # fmt: skip
    for name, device in cured["slots"].items():  # Slots lie with their variables.
        owner = [place for variable, place in places.items() if variable in name]
        assert not owner or owner == [server(device)]

    plain_path = str(runner.folder / "plain" / "model")
    plain = result(runner, version, SCRIPT, "--keras", keras, "--save", plain_path, servers=2)
    np.testing.assert_allclose(cured["losses"], plain["losses"], rtol=1e-5)
    # A table that was cut is saved as one, under the name and with the values that it has whole.
    whole = [name for name in plain["names"] if name.endswith("/embeddings/.ATTRIBUTES/VARIABLE_VALUE")]
    assert len(whole) == 2
    restored, saved = (
        result(runner, version, "read_checkpoint.py", each["saved"], *whole) for each in (plain, cured)
    )
    for one, other in zip(saved, restored, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("version", nights.but(LOOPING, often=LOOPING[:1]))
def test_a_variable_of_the_script_stays_whole(runner, version):
    training = {**BOTH, "inputs": {"prefetch_batches": 2, "parallel_calls": 2}}
    cured = result(runner, version, SCRIPT, "--loop", training=training, servers=2)
    assert said(runner)[0] == (
        "partitioning", "refused", "a variable of shape [4000, 4] is the script's own, no layer's",
    )  # fmt: skip
    assert ("variable-placement", "applied", "table on ps-0, weights on ps-1") in said(runner)
    assert ("parallel-map", "applied", "<lambda>") in said(runner)
    assert ("prefetch", "applied", "BatchDataset: 2") in said(runner)
    assert [server(each) for each in cured["places"].values()] == ["0", "1"]
    plain = result(runner, version, SCRIPT, "--loop", servers=2)
    np.testing.assert_allclose(cured["losses"], plain["losses"], rtol=1e-6)


#: The table in two parts, each where it would not go by size; a server that there is not is none.
PLAN = {
    "variables": [
        {"name": "large/embeddings", "ps": [1, 1]},
        {"name": "dense/kernel", "ps": [0]},
        {"name": "dense/bias", "ps": [7]},
    ]
}


@pytest.mark.parametrize(("version", "keras"), nights.but(FITTING, often=FITTING[:1]))
def test_a_saved_plan_is_obeyed(runner, version, keras):
    training = {"variable_plan": PLAN, "partitioning": BOTH["partitioning"]}
    cured = result(runner, version, SCRIPT, "--keras", keras, training=training, servers=2)
    assert {(name, outcome) for name, outcome, _ in said(runner)} == {
        ("variable-placement", "applied"), ("partitioning", "applied"),
    }  # fmt: skip
    places = {name.split(":")[0]: server(device) for name, device in cured["places"].items()}
    assert places == {
        "large/embeddings/part_0": "1", "large/embeddings/part_1": "1", "small/embeddings": "0",
        "dense/kernel": "0", "dense/bias": "0",
    }  # fmt: skip


@pytest.mark.nightly
def test_a_partitioner_of_the_script_stays(runner):
    cured = result(
        runner, None, SCRIPT, "--keras", "tf_keras", "--cut", "3",
        training={"partitioning": {"strategy": "fixed"}}, servers=2,
    )  # fmt: skip
    assert said(runner) == [("partitioning", "refused", "the script has a partitioner of its own")]
    assert "large/embeddings/part_2:0" in cured["places"]


#: What the job file asks for; how many parts the large table of 64,000 bytes has then.
FIXED = [({"min_shard_bytes": 8192}, 2), ({"shards": 3, "min_shard_bytes": 8192}, 3), ({}, 1)]


@pytest.mark.nightly
@pytest.mark.parametrize(("asked", "parts"), FIXED)
def test_a_fixed_number_of_parts_is_for_what_is_large(runner, asked, parts):
    training = {"partitioning": {"strategy": "fixed", **asked}}
    cured = result(runner, None, SCRIPT, "--keras", "tf_keras", training=training, servers=2)
    assert len([name for name in cured["places"] if "large" in name]) == parts
    assert not [name for name in cured["places"] if "part" in name and "large" not in name]
