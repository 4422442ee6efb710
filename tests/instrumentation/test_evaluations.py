"""What a script finds its model to be worth is heard, whatever it calls that."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from support import interpreters
from support.styles import SCRIPTS

from paceline.instrumentation.paceline_instrumentation import evaluations, guarding, reporting

#: Trains by Keras, validates after each epoch and evaluates at the end.
KERAS = """
import json, os, sys
import numpy as np
import tensorflow as tf
keras = __import__(sys.argv[1])
model = keras.Sequential([keras.layers.InputLayer((2,)), keras.layers.Dense(1, "sigmoid")])
model.compile("sgd", "binary_crossentropy", metrics=["accuracy", keras.metrics.AUC(name="auc")])
x, y = np.random.RandomState(0).normal(size=(64, 2)), np.arange(64) % 2
history = model.fit(x, y, batch_size=8, epochs=2, verbose=0, validation_data=(x, y)).history
found = model.evaluate(x, y, verbose=0)
names = ["val_" + name for name in ("auc", "accuracy", "loss")]
print(json.dumps([[history[name][epoch] for name in names] for epoch in (0, 1)]))
print(json.dumps([float(each) for each in found]))
"""


@pytest.fixture
def watch(tmp_path):
    reporter = reporting.Reporter(str(tmp_path / "reports.jsonl"))
    return evaluations.EvaluationWatch(reporter, guarding.Guard(reporter))


@pytest.fixture
def told(tmp_path):
    """What was reported, without the time."""

    def read():
        path = tmp_path / "reports.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [{name: each[name] for name in each.keys() - {"at", "source", "type"}} for each in lines]

    return read


def test_results_of_an_estimator(watch, told):
    module = SimpleNamespace(_evaluate_once=lambda checkpoint_path, **more: more["final_ops"])
    watch.patch_evaluations(module)
    results = {
        "auc": np.float32(0.75), "auc_precision_recall": np.float32(0.5), "accuracy": np.float32(0.5),
        "average_loss": np.float32(0.25), "loss": np.float32(32.0), "global_step": np.int64(700),
    }  # fmt: skip
    assert module._evaluate_once("model.ckpt-700", final_ops=results) is results
    assert told() == [{"auc": 0.75, "accuracy": 0.5, "log_loss": 0.25, "step": 700}]
    # A regression has neither, so its mean loss is no cross entropy.
    module._evaluate_once("model.ckpt-800", final_ops={"average_loss": 3.0, "global_step": 800})
    module._evaluate_once("model.ckpt-900", final_ops=None)
    assert len(told()) == 1


@pytest.mark.parametrize(
    ("loss", "losses", "is_known"),
    [
        ("binary_crossentropy", [], True),
        (SimpleNamespace(name="binary_crossentropy"), [], True),
        (SimpleNamespace(name="mean_squared_error"), [], False),
        ("binary_crossentropy", ["of a regularizer"], False),
        (None, [], False),
    ],
)
def test_the_loss_of_keras_counts_where_it_is_a_cross_entropy(watch, told, loss, losses, is_known):
    model = SimpleNamespace(loss=loss, losses=losses, optimizer=SimpleNamespace(iterations=7))
    watch._note_test(SimpleNamespace(model=model), {"loss": 0.5, "auc_1": 0.75})
    (found,) = told()
    assert found == {"auc": 0.75, "step": 7} | ({"log_loss": 0.5} if is_known else {})


def test_an_epoch_is_reported_where_its_validation_was_not(watch, told):
    callbacks = SimpleNamespace(model=None)
    logs = {"loss": 1.0, "acc": 0.1, "val_acc": 0.2}
    watch._note_epoch(callbacks, {"loss": 1.0, "acc": 0.1})
    watch._note_epoch(callbacks, logs)
    assert told() == [{"accuracy": 0.2, "step": None}]
    watch._note_test(callbacks, {})
    watch._note_test(callbacks, {"acc": 0.3})
    watch._note_epoch(callbacks, logs)
    assert len(told()) == 2


@given(
    st.dictionaries(
        st.text(max_size=12)
        | st.sampled_from(["auc", "auc_2", "acc", "log_loss", "val_auc"])
        | st.integers(),
        st.floats() | st.text() | st.none() | st.lists(st.integers()) | st.just(np.zeros((2, 2))),
    )
)
def test_any_results(results):
    found = evaluations.measures(results)
    assert found.keys() <= {"auc", "accuracy", "log_loss"}
    assert all(value is None or isinstance(value, float) for value in found.values())


@pytest.mark.slow
@pytest.mark.parametrize("keras", ["tf_keras", "keras"])
def test_keras_is_heard_after_each_epoch_and_at_the_end(runner, keras):
    (runner.folder / "train.py").write_text(KERAS)
    done = runner.run("train.py", keras)
    assert done.returncode == 0, done.stderr
    validated, (loss, accuracy, auc) = (json.loads(line) for line in done.stdout.splitlines())
    reports = runner.reports("evaluation")
    assert [each["step"] for each in reports] == [8, 16, 16]
    found = [[each[name] for name in ("auc", "accuracy", "log_loss")] for each in reports]
    assert found == [pytest.approx(each, rel=1e-6) for each in [*validated, [auc, accuracy, loss]]]


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("version", ["1.8.0", "1.15.5", "2.8.4", "2.15.1"])
def test_an_estimator_is_heard(runner, version):
    python = interpreters.with_tensorflow_or_skip(version)
    done = runner.run(str(SCRIPTS / "tf1_estimator.py"), "--steps=200", python=python)
    assert done.returncode == 0, done.stderr
    printed = json.loads(re.search(r"^evaluated (.*)$", done.stdout, re.MULTILINE).group(1))
    reports = runner.reports("evaluation")
    assert reports[-1]["step"] == printed["global_step"] == 200
    assert reports[-1]["auc"] == pytest.approx(printed["auc"], rel=1e-6)
    assert reports[-1]["log_loss"] == pytest.approx(printed["average_loss"], rel=1e-6)
    assert sum(each["steps"] for each in runner.reports("step")) == 200
