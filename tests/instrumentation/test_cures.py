"""What cures do to the graphs of sessions, in TensorFlows old and new; what they say, what they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import nights, ports
from support.interpreters import with_tensorflow_or_skip

from paceline.model.variables.cures import CURES

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[1] / "scripts" / "cured" / "tf1_tables.py"
VERSIONS = (None, "1.4.1", "1.8.0", "1.12.3", "1.15.5", "2.4.4", "2.11.1", "2.15.1")
#: What the script places by turns: the step, the three tables, the weights.
TABLES = ["model/table_0", "model/table_1", "model/table_2"]
LEARNING_RATE, KEPT, KEPT_SQUARE, EPSILON = 0.01, 0.9, 0.999, 1e-8


@pytest.fixture
def trained(runner) -> Callable[..., dict[str, Any]]:
    """Runs the script with a training section; returns what it says, and what cures say of themselves."""

    def train(*options: str, version: str | None = None, **training: Any) -> dict[str, Any]:
        runner.reports_file.unlink(missing_ok=True)
        cluster = {
            "cluster": {"ps": ["a:1", "b:1"], "worker": ["c:1"]},
            "task": {"type": "worker", "index": 0},
        }
        environment = runner.environment(
            PACELINE_TRAINING=json.dumps(training) if training else "", TF_CONFIG=json.dumps(cluster)
        )
        done = runner.run(
            str(SCRIPT), "--ports", ports.joined(4), "--folder", str(runner.folder), *options,
            python=str(with_tensorflow_or_skip(version)), environment=environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        said = json.loads(done.stdout.splitlines()[-1])
        said["cures"] = {each["name"]: each for each in runner.reports("cure")}
        assert runner.reports("step"), "the steps are seen all the same"
        return said

    return train


def lazily(folder: Path, part: int = 0) -> tuple[Any, Any, Any]:
    """Return a part of the large table before and after, and what lazy Adam makes of it by its formula."""
    with np.load(folder / f"part_{part}.npz") as found:
        before, after = found["first"], found["last"]
        steps = len([name for name in found.files if name.startswith("rows_")])
        table = before.astype(np.float64)
        mean, square = np.zeros_like(table), np.zeros_like(table)
        for step in range(1, steps + 1):
            gradient = np.zeros_like(table)
            rows = found[f"rows_{step - 1}"]
            np.add.at(gradient, rows, found[f"values_{step - 1}"])
            rows = np.unique(rows)
            mean[rows] = KEPT * mean[rows] + (1 - KEPT) * gradient[rows]
            square[rows] = KEPT_SQUARE * square[rows] + (1 - KEPT_SQUARE) * gradient[rows] ** 2
            rate = LEARNING_RATE * np.sqrt(1 - KEPT_SQUARE**step) / (1 - KEPT**step)
            table[rows] -= rate * mean[rows] / (np.sqrt(square[rows]) + EPSILON)
        return before, after, table


def restores(runner, version: str | None, folder: Path) -> None:
    """Plain TensorFlow reads the checkpoint: whole tables by their names, with their slots."""
    code = (
        "import json, sys, tensorflow as tf\n"
        "has_load = hasattr(tf.train, 'load_checkpoint')\n"
        "reader = (tf.train.load_checkpoint if has_load else tf.train.NewCheckpointReader)(sys.argv[1])\n"
        "print(json.dumps({k: list(v) for k, v in reader.get_variable_to_shape_map().items()}))\n"
        "print(float(reader.get_tensor('model/table_1').sum()))"
    )
    done = runner.run(
        "-c", code, str(folder / "model"), python=str(with_tensorflow_or_skip(version)),
        environment=runner.environment(PACELINE_INSTRUMENTATION="off"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    shapes = json.loads(done.stdout.splitlines()[-2])
    assert {name: shapes[name] for name in TABLES} == dict(
        zip(TABLES, ([40, 8], [4000, 8], [30, 8]), strict=True)
    )
    assert shapes["model/table_1/Adam"] == [4000, 8]


@pytest.mark.parametrize("resource", [True, False])
@pytest.mark.parametrize("version", nights.but(VERSIONS, often=(None, "1.4.1")))
def test_lazy_adam_moves_the_rows_of_a_batch_by_its_formula(trained, runner, version, resource):
    kind = ("--resource",) if resource else ()
    said = trained(*kind, version=version, optimizer={"name": "lazy-adam"})
    assert said["cures"]["lazy-adam"]["outcome"] == "applied"
    assert said["cures"]["lazy-adam"]["message"] == ", ".join(TABLES)
    before, after, expected = lazily(runner.folder)
    assert np.abs(after - expected).max() < 1e-6
    assert (before == after).all(1).sum() > 3000, "rows that no batch uses stay as they were"
    restores(runner, version, runner.folder)


def test_without_a_cure_adam_is_as_it_was(trained, runner):
    said = trained()
    assert said["cures"] == {}
    _, after, expected = lazily(runner.folder)
    assert np.abs(after - expected).max() > 1e-4, "or the test of lazy Adam shows nothing"


def test_lazy_adam_has_nothing_to_say_of_another_optimizer(trained):
    assert trained("--optimizer=adagrad", optimizer={"name": "lazy-adam"})["cures"] == {}


@pytest.mark.parametrize("resource", nights.but([True, False], often=(False,)))
@pytest.mark.parametrize("version", nights.but(VERSIONS, often=("1.4.1",)))
def test_variables_are_placed_by_size(trained, version, resource):
    kind = ("--resource",) if resource else ()
    plain = trained(*kind, version=version)
    said = trained(*kind, version=version, variable_placement="greedy")
    on = {name: device for name, device in said["devices"].items() if name in (*TABLES, "model/weights")}
    (server,) = {on["model/table_1"]}
    assert [name for name, device in on.items() if device == server] == ["model/table_1"]
    assert said["devices"]["model/table_1/Adam"] == server, "slots lie with their variable"
    turns = {name: device for name, device in plain["devices"].items() if name in on}
    assert turns != on
    assert said["losses"] == pytest.approx(plain["losses"], rel=1e-5)
    assert said["cures"]["variable-placement"]["count"] >= len(on)


def test_a_saved_plan_is_obeyed(trained):
    plan = {"variables": [{"name": name, "ps": [1]} for name in TABLES]}
    said = trained(variable_plan=plan)
    assert {said["devices"][name] for name in TABLES} == {said["devices"]["model/table_1"]}
    assert "task:1" in said["devices"]["model/table_1"]


def test_a_strategy_of_the_script_stays(trained):
    said = trained("--placing=own", variable_placement="greedy")
    assert all("task:1" in said["devices"][name] for name in TABLES)
    cure = said["cures"]["variable-placement"]
    assert (cure["outcome"], "strategy of its own" in cure["message"]) == ("refused", True)


@pytest.mark.parametrize(
    "lookup", nights.but(["embedding", "gather", "list", "sparse"], often=("gather", "sparse"))
)
@pytest.mark.parametrize("version", nights.but(VERSIONS, often=(None,)))
def test_a_large_table_is_cut_and_read_by_ranges(trained, runner, version, lookup):
    said = trained(f"--lookup={lookup}", "--steps=30", version=version, partitioning={"strategy": "fixed"})
    parts = {
        name: device for name, device in said["devices"].items() if name.startswith("model/table_1/part_")
    }
    parts = {name: device for name, device in parts.items() if "Adam" not in name}
    assert len(parts) == len(set(parts.values())) == 2
    assert [name for name in said["devices"] if name == "model/table_2"], "small ones stay whole"
    assert said["cures"]["partitioning"]["message"] == "model/table_1 in 2 parts"
    assert said["pulled"] == [], "no step puts the table together"
    assert said["losses"][-1] < said["losses"][0]
    # Rows that are often used are the first ones: by ranges they lie in the first part.
    with np.load(runner.folder / "part_0.npz") as first:
        assert max(first["rows_0"].max() for _ in "1") < 2000
    restores(runner, version, runner.folder)


def test_a_part_of_a_table_learns_lazily_too(trained, runner):
    said = trained(partitioning={"strategy": "fixed"}, optimizer={"name": "lazy-adam"})
    assert said["cures"]["lazy-adam"]["count"] == 4
    for part in (0, 1):
        _, after, expected = lazily(runner.folder, part)
        assert np.abs(after - expected).max() < 1e-6


def test_other_orders_of_rows_are_refused(trained):
    said = trained(partitioning={"strategy": "fixed", "rows": "hashed"})
    assert said["cures"]["partitioning"]["outcome"] == "refused"
    assert "contiguous" in said["cures"]["partitioning"]["message"]
    assert "model/table_1" in said["devices"]


@pytest.mark.parametrize("version", nights.but(VERSIONS, often=(None,)))
def test_variables_without_a_place_go_to_the_servers(trained, version):
    plain = trained("--placing=none", version=version)
    assert set(plain["devices"].values()) == {""}
    said = trained("--placing=none", version=version, unplaced_variables="ps")
    if version == "1.4.1":
        assert said["cures"]["unplaced-variables"]["outcome"] == "refused"
        return
    assert {said["devices"][name].split("/")[1] for name in (*TABLES, "model/weights")} == {"job:ps"}
    assert said["losses"] == pytest.approx(plain["losses"], rel=1e-5)


def test_variables_with_a_place_stay_there(trained):
    plain, said = trained(), trained(unplaced_variables="ps")
    assert said["devices"] == plain["devices"]
    assert said["cures"] == {}


@pytest.mark.parametrize("resource", nights.but([True, False], often=(True,)))
@pytest.mark.parametrize("version", nights.but(VERSIONS, often=(None,)))
def test_ids_are_looked_up_once(trained, runner, version, resource):
    kind = ("--resource",) if resource else ()
    plain = trained(*kind, version=version)
    with np.load(runner.folder / "part_0.npz") as found:
        assert len(found["rows_0"]) == 64
    said = trained(*kind, version=version, unique_ids=True)
    with np.load(runner.folder / "part_0.npz") as found:
        assert len(found["rows_0"]) == len(set(found["rows_0"])) < 64
    assert said["losses"] == pytest.approx(plain["losses"], rel=1e-4)
    assert said["cures"]["unique-ids"]["count"] == 3


def test_ids_that_are_unique_stay(trained):
    assert trained("--lookup=sparse", unique_ids=True)["cures"] == {}


@pytest.mark.parametrize("version", nights.but(VERSIONS, often=("1.4.1",)))
def test_the_wait_for_the_chief_is_replaced_unless_it_was_chosen(trained, version):
    said = trained(version=version, recovery_wait_seconds=1)
    assert said["cures"]["recovery-wait"]["message"] == "session manager: 1 s instead of 30 s"
    said = trained("--wait=7", version=version, recovery_wait_seconds=1)
    assert said["cures"]["recovery-wait"]["outcome"] in ("applied", "refused")


@pytest.mark.parametrize("version", nights.but(VERSIONS, often=("1.4.1",)))
def test_device_filters_are_given_where_they_fit(trained, version):
    said = trained(version=version, device_filters=True)
    assert said["cures"]["device-filters"]["message"] == "session: /job:ps and /job:worker/task:0"


@pytest.mark.parametrize(
    ("options", "reason"),
    [(("--filters",), "filters of its own"), (("--placing=elsewhere",), "operations on /job:worker/task:1")],
)
def test_device_filters_are_refused_where_they_do_not(trained, options, reason):
    cure = trained(*options, device_filters=True)["cures"]["device-filters"]
    assert cure["outcome"] == "refused"
    assert reason in cure["message"]


def test_all_cures_go_together(trained, runner):
    said = trained(
        optimizer={"name": "lazy-adam"}, partitioning={"strategy": "fixed"}, variable_placement="greedy",
        unplaced_variables="ps", unique_ids=True, recovery_wait_seconds=1, device_filters=True,
    )  # fmt: skip
    assert {name for name, each in said["cures"].items() if each["outcome"] == "applied"} == {
        "lazy-adam", "partitioning", "variable-placement", "unique-ids", "recovery-wait", "device-filters",
    }  # fmt: skip
    versions = {cure.name: cure.version for cure in CURES}
    assert all(each["version"] == versions[name] for name, each in said["cures"].items())
    restores(runner, None, runner.folder)


def test_switched_off_nothing_is_changed(runner, trained):
    plain = trained()
    environment = runner.environment(
        PACELINE_TRAINING=json.dumps({"optimizer": {"name": "lazy-adam"}}), PACELINE_INSTRUMENTATION="off"
    )
    done = runner.run(
        str(SCRIPT),
        "--ports",
        ports.joined(4),
        "--folder",
        str(runner.folder),
        environment=environment,
    )
    assert json.loads(done.stdout.splitlines()[-1])["losses"] == plain["losses"]


def test_a_script_of_the_training_library_is_left_alone(runner):
    text = (
        "import sys, types\n"
        "sys.modules['paceline.training.reports'] = types.ModuleType('reports')\n"
        "import tensorflow.compat.v1 as tf\n"
        "tf.Session()\n"
    )
    training = {"partitioning": {"strategy": "fixed", "rows": "hashed"}, "steps_in_flight": 2}
    done = runner.code(text, environment=runner.environment(PACELINE_TRAINING=json.dumps(training)))
    assert done.returncode == 0, done.stderr
    assert runner.reports("cure") == []
