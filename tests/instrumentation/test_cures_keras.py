"""Cures of scripts of Keras do what they say to real ones: other values where they say so, else the same."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support import nights
from support.cured import result, said

pytestmark = pytest.mark.slow
ADAM, FIT = "keras_adam.py", "fit_steps.py"
LAZY_ADAM = {"optimizer": {"name": "lazy-adam"}}
_RATE, _KEPT, _KEPT_SQUARE, _EPSILON = 0.05, 0.9, 0.999, 1e-7
_KERAS = "tensorflow.keras"
#: TensorFlow (None: the one of these tests), the package of Keras, the optimizer.
GENERATIONS = [
    (None, "tf_keras", "Adam"),
    ("2.4.4", _KERAS, "Adam"),
    (None, "tf_keras", "legacy.Adam"),
    ("2.1.4", _KERAS, "Adam"),
    ("2.8.4", _KERAS, "Adam"),
    ("2.8.4", _KERAS, "keras.optimizer_experimental.adam.Adam"),
    ("2.11.1", _KERAS, "Adam"),
    ("2.11.1", _KERAS, "legacy.Adam"),
    ("2.15.1", _KERAS, "Adam"),
    ("2.15.1", _KERAS, "legacy.Adam"),
]


def gradients(table, kernel, ids, labels):
    """Those of the model's mean squared error, computed by hand: of the table, of the dense layer."""
    rows = table[ids].reshape(len(ids), -1)
    errors = 2 * (rows @ kernel - labels) / len(ids)
    of_table = np.zeros_like(table)
    np.add.at(of_table, ids, (errors @ kernel.T).reshape(*ids.shape, -1))
    return of_table, rows.T @ errors


class Adam:
    """Adam of one variable, written out; of a table only the rows that are used."""

    def __init__(self, values):
        self.values, self.mean, self.square = values, np.zeros_like(values), np.zeros_like(values)
        self.steps = 0

    def move(self, gradient, rows=slice(None)):
        self.steps += 1
        part = gradient[rows]
        self.mean[rows] = _KEPT * self.mean[rows] + (1 - _KEPT) * part
        self.square[rows] = _KEPT_SQUARE * self.square[rows] + (1 - _KEPT_SQUARE) * part**2
        rate = _RATE * np.sqrt(1 - _KEPT_SQUARE**self.steps) / (1 - _KEPT**self.steps)
        self.values[rows] -= rate * self.mean[rows] / (np.sqrt(self.square[rows]) + _EPSILON)


@pytest.mark.parametrize(("version", "keras", "adam"), nights.but(GENERATIONS, often=GENERATIONS[:1]))
def test_lazy_adam_moves_the_rows_of_a_batch_as_its_formula_says(runner, version, keras, adam):
    path = str(runner.folder / "checkpoint")
    found = result(
        runner, version, ADAM, "--keras", keras, "--adam", adam, "--save", path, training=LAZY_ADAM
    )
    assert said(runner) == [("lazy-adam", "applied", "table/embeddings")]

    table, kernel = (Adam(np.array(each, np.float64)) for each in found["weights"][0])
    for (ids, labels), weights in zip(found["batches"], found["weights"][1:], strict=True):
        of_table, of_kernel = gradients(table.values, kernel.values, np.array(ids), np.array(labels))
        table.move(of_table, np.unique(ids))
        kernel.move(of_kernel)
        np.testing.assert_allclose(weights[0], table.values, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(weights[1], kernel.values, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found["weights"][-1][0][30:], found["weights"][0][0][30:])
    slots = [np.array(each) for each in found["slots"].values() if np.shape(each) == (40, 3)]
    np.testing.assert_allclose(slots[0], table.mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(slots[1], table.square, rtol=1e-4, atol=1e-6)

    # TensorFlow itself restores what was saved, and has slots of the same names.
    plain = result(runner, version, ADAM, "--keras", keras, "--adam", adam, "--restore", found["saved"])
    names = [{name.removeprefix("Adam/") for name in each["slots"]} for each in (plain, found)]
    assert names[0] == names[1]
    table.move(gradients(table.values, kernel.values, *map(np.array, found["batches"][0]))[0])
    np.testing.assert_allclose(plain["weights"][-1][0], table.values, rtol=1e-4, atol=1e-5)


REFUSALS = [
    (None, "keras", [], "Keras 3 does not train with parameter servers"),
    (None, "tf_keras", ["--amsgrad"], "amsgrad needs the largest moment of every row"),
    ("2.4.4", _KERAS, ["--amsgrad"], "amsgrad needs the largest moment of every row"),
]


@pytest.mark.parametrize(
    ("version", "keras", "arguments", "reason"), nights.but(REFUSALS, often=REFUSALS[:1])
)
def test_lazy_adam_is_refused_where_it_does_not_fit(runner, version, keras, arguments, reason):
    cured = result(runner, version, ADAM, "--keras", keras, *arguments, training=LAZY_ADAM)
    assert said(runner) == [("lazy-adam", "refused", reason)]
    assert cured["weights"] == result(runner, version, ADAM, "--keras", keras, *arguments)["weights"]


EAGER = """
import json
import numpy as np, tensorflow as tf, tf_keras
table = tf.Variable(np.zeros((4, 2), "float32"), name="table")
optimizer = tf_keras.optimizers.legacy.Adam(0.01)
gradient = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([1]), tf.constant([4, 2]))
optimizer.apply_gradients([(gradient, table)])
print(json.dumps([table.numpy().tolist(), optimizer.get_slot(table, "m").numpy().tolist()]))
"""


def test_a_gradient_that_is_applied_at_once_is_applied_once(runner):
    training = json.dumps({"optimizer": {"name": "lazy-adam"}})
    done = runner.code(EAGER, environment=runner.environment(PACELINE_TRAINING=training))
    assert done.returncode == 0, done.stderr[-2000:]
    table, mean = json.loads(done.stdout.splitlines()[-1])
    assert table == [[0, 0], [pytest.approx(-0.01, rel=1e-4)] * 2, [0, 0], [0, 0]]
    assert mean == [[0, 0], [pytest.approx(0.1, rel=1e-4)] * 2, [0, 0], [0, 0]]


#: TensorFlow, the package of Keras.
FITTING = [(None, "tf_keras"), (None, "keras"), ("2.4.4", _KERAS), ("2.8.4", _KERAS), ("2.11.1", _KERAS),
           ("2.15.1", _KERAS)]  # fmt: skip
AT_ONCE = {"steps_per_execution": 4}


@pytest.mark.parametrize(("version", "keras"), nights.but(FITTING, often=FITTING[:1]))
def test_several_steps_in_a_call_learn_the_same(runner, version, keras):
    cured = result(runner, version, FIT, "--keras", keras, training=AT_ONCE)
    [(name, outcome, message)] = said(runner)
    assert (name, outcome) == ("steps-per-execution", "applied")
    assert message.startswith("sequential")
    assert message.endswith(": 4")
    assert cured["steps_per_execution"] == 4
    assert (cured["iterations"], cured["heard"]) == (33, 3)
    plain = result(runner, version, FIT, "--keras", keras)
    assert (plain["steps_per_execution"], plain["iterations"]) == (1, 33)
    np.testing.assert_allclose(cured["losses"], plain["losses"], rtol=1e-5)
    for one, other in zip(cured["weights"], plain["weights"], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


#: What the script has; how many steps a call makes then; why.
_WANTS = "Batches, a callback of the script, wants each batch"
KEPT = [
    (None, "tf_keras", ["--watched"], 1, _WANTS),
    (None, "keras", ["--watched"], 1, _WANTS),
    ("2.4.4", _KERAS, ["--watched"], 1, _WANTS),
    (None, "tf_keras", ["--called"], 1, _WANTS.replace("Batches", "LambdaCallback")),
    (None, "tf_keras", ["--own", "3"], 3, "the script has chosen 3"),
    (None, "keras", ["--own", "3"], 3, "the script has chosen 3"),
]


@pytest.mark.parametrize(("version", "keras", "more", "steps", "why"), nights.but(KEPT, often=KEPT[:1]))
def test_a_fit_that_needs_other_steps_in_a_call_keeps_them(runner, version, keras, more, steps, why):
    cured = result(runner, version, FIT, "--keras", keras, *more, training=AT_ONCE)
    assert said(runner) == [("steps-per-execution", "refused", why)]
    assert cured["steps_per_execution"] == steps
    heard = 33 + 3 if "--watched" in more else 3
    assert (cured["iterations"], cured["heard"]) == (33, heard)


@pytest.mark.nightly
def test_a_keras_without_executions_says_so(runner):
    result(runner, "2.1.4", ADAM, training=AT_ONCE)
    assert said(runner) == [("steps-per-execution", "refused", "this Keras has no steps_per_execution")]
