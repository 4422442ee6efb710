"""Scripts of TensorFlow 2 are seen as they are, and do what they did."""

from __future__ import annotations

import itertools
import json
import re

import pytest
from support.styles import SCRIPTS

from paceline.specs.job_file import variable_files

pytestmark = pytest.mark.slow
LOOP, FIT = (str(SCRIPTS / f"tf2_{name}.py") for name in ("loop", "fit"))


def test_a_loop_around_a_function(runner):
    done = runner.run(LOOP, environment=runner.environment(PAUSE="0.01"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("iterations 150\n")
    reports = runner.reports("step")
    assert reports[-1]["step"] == 150
    for before, after in itertools.pairwise(reports):
        assert after["step"] - before["step"] == after["steps"]
    assert all(each["examples"] == 32 * each["steps"] for each in reports)
    printed = {float(loss) for loss in re.findall(r"^step \d+ loss (\S+)$", done.stdout, re.MULTILINE)}
    losses = [each["loss"] for each in reports]
    assert losses[-1] is not None
    # The first report may come before the first step has given its loss.
    assert all(
        any(loss == pytest.approx(each, rel=1e-6) for each in printed) for loss in losses if loss is not None
    )
    said = [each["message"] for each in runner.reports("instrumentation")]
    assert said[1:] == ["its steps, as Adagrad counts them; batch: of 32 examples"]
    table, weights = variable_files.load_variables(runner.folder / "variables.json")
    assert (table.name, table.shape, table.sparse, table.slots) == ("table", (500, 8), True, 1)
    assert (weights.name, weights.sparse, weights.updates) == ("weights", False, ("Adagrad",))
    assert (table.step_bytes, weights.step_bytes) == (None, 2 * 4 * 8)
    assert table.devices == ("/job:localhost/task:0",)


@pytest.mark.parametrize(
    ("arguments", "model"), [([], ""), (["--keras3"], "sequential/")], ids=["tf_keras", "keras-3"]
)
def test_fit(runner, arguments, model):
    done = runner.run(FIT, *arguments, environment=runner.environment(PAUSE="0.02"))
    assert done.returncode == 0, done.stderr
    losses = json.loads(re.search(r"^losses (.*)$", done.stdout, re.MULTILINE).group(1))
    reports = runner.reports("step")
    assert reports[-1]["step"] == 180
    assert {each["total_steps"] for each in reports} == {180}
    # Keras gives the mean of an epoch so far.
    assert reports[-1]["loss"] == pytest.approx(losses[-1], rel=1e-6)
    assert all(each["examples"] == 32 * each["steps"] for each in reports)
    assert {each["name"]: each["value"] for each in runner.reports("fact")} == {"model_fit": True}
    variables = variable_files.load_variables(runner.folder / "variables.json")
    names = [each.name.removeprefix(model) for each in variables]
    assert names == ["table/embeddings", "dense/kernel", "dense/bias"]
    assert [each.slots for each in variables] == [2, 2, 2]
    assert [each.sparse for each in variables] == [True, False, False]


@pytest.mark.nightly
@pytest.mark.parametrize("arguments", [[LOOP], [FIT], [FIT, "--keras3"]], ids=["loop", "tf_keras", "keras-3"])
def test_the_script_does_what_it_did(runner, arguments):
    seen = runner.run(*arguments)
    alone = runner.run(*arguments, environment=runner.environment(PACELINE_INSTRUMENTATION="off"))
    assert seen.returncode == alone.returncode == 0

    def results(text: str) -> list[str]:
        return [line for line in text.splitlines() if line.startswith(("step", "losses", "iterations"))]

    assert results(seen.stdout) == results(alone.stdout) != []


ANEW = """
import sys
import numpy as np
from importlib import import_module
keras = import_module(sys.argv[1])
from paceline_instrumentation import eager

model = keras.Sequential([keras.layers.Dense(1)])
x, y = np.ones([64, 4], "float32"), np.ones([64, 1], "float32")
followed = []
begin = eager.EagerWatch._begin


def noted(watch, optimizer, pairs):
    begin(watch, optimizer, pairs)
    followed.append(optimizer)


eager.EagerWatch._begin = noted
for _ in range(2):
    optimizer = keras.optimizers.Adam()
    model.compile(optimizer=optimizer, loss="mse")
    model.fit(x, y, epochs=2, verbose=0)
    assert followed[-1] is optimizer
    model.fit(x[:40], y[:40], verbose=0)
    assert followed[-1] is optimizer
assert len({id(each) for each in followed}) == 2
"""


@pytest.mark.parametrize("keras", ["tf_keras", "keras"])
def test_a_model_that_is_compiled_again_is_followed_on(runner, keras):
    done = runner.run("-c", ANEW, keras)
    assert done.returncode == 0, done.stderr
    said = [each["message"] for each in runner.reports("instrumentation")]
    assert not [each for each in said if "error of its own" in each]
