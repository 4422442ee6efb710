"""A model trained over two parameter servers scores elsewhere as it did there."""

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from support import server_sessions

from paceline.training import errors, features

pytestmark = pytest.mark.slow

WIDE = (features.Identity("f0", 300), features.Identity("f1", 200))
COLUMNS = (*WIDE, features.Hashed("f2", 50), features.Cross(WIDE, 70))
FEATURES = features.FeatureSet((features.Numeric("x"), features.Numeric("y")), COLUMNS, features.Label("l"))
TRAINING = {
    "embedding_dimension": 4,
    "hidden_units": [16, 8],
    "optimizer": {"name": "lazy-adam", "learning_rate": 0.1},
    "partitioning": {"strategy": "fixed", "rows": "hashed"},
}

SCORE = """
import sys
sys.modules["paceline"] = None  # as where it is not installed
import numpy as np
import tensorflow as tf
loaded = tf.saved_model.load(sys.argv[1])
batch = np.load(sys.argv[2])
given = {name: tf.constant(batch[name]) for name in ("numeric", "ids")}
np.save(sys.argv[3], loaded.signatures["serving_default"](**given)["probabilities"].numpy())
for variable in loaded.variables:
    print(variable.name, *variable.shape)
"""


def model():
    from paceline import training

    return training.WideAndDeep(FEATURES, deep=COLUMNS, wide=WIDE)  # two tables, in three variables


def batch(seed):
    random = np.random.default_rng(seed)
    ids = np.stack([random.integers(0, column.rows, 256) for column in COLUMNS], axis=1).astype(np.int32)
    labels = (ids[:, 0] % 2).astype(np.float32)
    return features.Examples(random.normal(size=(256, 2)).astype(np.float32), ids, labels)


@pytest.fixture
def checkpoint_dir(cluster, tmp_path):
    """Checkpoints of a model that is trained a little, and its scores of a batch in `scores.npy`."""

    from paceline.training import settings
    from paceline.training.checkpoints import checkpoints
    from paceline.training.graph import graphs

    made, target = cluster
    graph = graphs.build(model(), made, settings.parse(TRAINING))
    folder = tmp_path / "checkpoints"
    saved = checkpoints.Checkpoints(str(folder), graph.contents, 60)
    saved.prepare()
    with server_sessions.session(made, target, graph.graph) as session:
        session.run(graph.initialise)
        for seed in range(20):
            session.run([graph.counted, *graph.updates], dict(zip(graph.inputs, batch(seed), strict=True)))
        saved.save(session, 20)
        scores = session.run(graph.probabilities, dict(zip(graph.inputs[:2], batch(99)[:2], strict=True)))
    np.save(tmp_path / "scores.npy", scores)
    np.savez(tmp_path / "batch.npz", **batch(99)._asdict())
    return str(folder)


def test_it_scores_without_paceline_as_training_did(checkpoint_dir, tmp_path):
    from paceline import training

    path = tmp_path / "models" / "1"
    for _ in range(2):  # the second replaces the first
        training.export(model(), checkpoint_dir, str(path), TRAINING)
    assert [each.name for each in path.parent.iterdir()] == ["1"]
    found = subprocess.run(
        [sys.executable, "-c", SCORE, path, tmp_path / "batch.npz", tmp_path / "found.npy"],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    expected = np.load(tmp_path / "scores.npy")
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), expected, rtol=1e-5)
    shapes = {name: shape for name, *shape in (line.split() for line in found.stdout.splitlines())}
    assert shapes["deep/vectors/0:0"] == ["500", "4"]
    assert not [name for name in shapes if "/m:" in name]


def test_what_is_no_saved_model_is_not_replaced(tmp_path):
    from paceline import training

    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(errors.ExportError, match="is no SavedModel"):
        training.export(model(), str(tmp_path), str(tmp_path), TRAINING)


def test_the_model_that_was_there_stays_if_the_new_one_cannot_be_moved(tmp_path, monkeypatch):
    import tensorflow as tf

    from paceline.training import exports

    path, new = tmp_path / "model", tmp_path / "model.temp"
    for each in (path, new):
        each.mkdir()
        (each / "saved_model.pb").write_text(each.name)
    rename = tf.io.gfile.rename

    def refusing(source, target):
        if source == str(new):
            raise tf.errors.PermissionDeniedError(None, None, "no")
        rename(source, target)

    monkeypatch.setattr(tf.io.gfile, "rename", refusing)
    with pytest.raises(tf.errors.PermissionDeniedError):
        exports._replace(str(new), str(path))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["model", "model.temp"]
    assert (path / "saved_model.pb").read_text() == "model"
    monkeypatch.undo()
    exports._replace(str(new), str(path))
    assert [each.name for each in tmp_path.iterdir()] == ["model"]
    assert (path / "saved_model.pb").read_text() == "model.temp"


def test_without_a_checkpoint_nothing_is_exported(tmp_path):
    from paceline import training

    with pytest.raises(errors.CheckpointError, match="has no checkpoint"):
        training.export(model(), str(tmp_path / "none"), str(tmp_path / "to"), TRAINING)
    assert not (tmp_path / "to").exists()


def run_alone(tiny_data, **environment):
    from training import tiny_job

    from paceline import training

    train, evaluation = (training.Source((str(path),)) for path in tiny_data)
    return training.run(
        tiny_job.MODEL,
        train=train,
        evaluation=evaluation,
        environment={
            "TF_CONFIG": '{"cluster": {"worker": ["localhost:0"]}, "task": {"type": "worker", "index": 0}}',
            **environment,
        },
    )


ODD_NAMES = ("user id", "a/b", "c:d", "größe", "_x", "-y", "x.z")


@pytest.mark.parametrize("fused", [True, False])
def test_features_may_have_any_names(tmp_path, fused):
    import tensorflow as tf

    from paceline import training

    columns = tuple(features.Hashed(name, 20) for name in ODD_NAMES)
    numbers = tuple(features.Numeric(f"{name} n") for name in ODD_NAMES)
    named = features.FeatureSet(numbers, columns, features.Label("label, yes"))
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(named.kinds())
        writer.writerows([["1"] * len(named.kinds())] * 64)
    chosen = json.dumps({**TRAINING, "fused_tables": fused, "export_dir": str(tmp_path / "exported")})
    result = training.run(
        training.DeepFM(named),
        train=training.Source((str(path),)),
        evaluation=training.Source((str(path),)),
        environment={
            "TF_CONFIG": '{"cluster": {"worker": ["localhost:0"]}, "task": {"type": "worker", "index": 0}}',
            "PACELINE_TRAINING": chosen,
            "PACELINE_CHECKPOINT_DIR": str(tmp_path / "checkpoints"),
        },
    )
    assert result.examples == 64
    stored = [name for name, _ in tf.train.list_variables(str(tmp_path / "checkpoints"))]
    assert fused or any("user_20id" in name for name in stored)
    assert tf.saved_model.load(str(tmp_path / "exported")).signatures["serving_default"]


def test_a_job_exports_when_it_ends(tiny_data, tmp_path):
    import tensorflow as tf

    chosen = json.dumps({**TRAINING, "max_steps": 5, "export_dir": str(tmp_path / "exported")})
    with pytest.raises(errors.SettingsError, match="export_dir needs a checkpoint folder"):
        run_alone(tiny_data, PACELINE_TRAINING=chosen)
    result = run_alone(
        tiny_data, PACELINE_TRAINING=chosen, PACELINE_CHECKPOINT_DIR=str(tmp_path / "checkpoints")
    )
    assert result.step == 5
    score = tf.saved_model.load(str(tmp_path / "exported")).signatures["serving_default"]
    found = score(numeric=tf.zeros([3, 1]), ids=tf.zeros([3, 2], tf.int32))
    assert found["probabilities"].shape == (3,)


@pytest.mark.parametrize(
    ("evaluation", "message"),
    [
        ("none-*.csv", "no file matches this pattern"),
        ("empty.csv", "no examples in it"),
        ("column.csv", "there is no column 'other'; did you mean 'othre'"),
    ],
)
@pytest.mark.parametrize("role", ["chief", "evaluator"])
def test_what_is_evaluated_on_is_looked_at_before_the_first_step(
    tiny_data, tmp_path, evaluation, message, role
):
    from training import tiny_job

    from paceline import training

    (tmp_path / "empty.csv").write_text("x,id,other,label\n")
    (tmp_path / "column.csv").write_text("x,id,othre,label\n1,1,1,1\n")
    cluster = {"chief": ["localhost:0"], **({"evaluator": ["localhost:0"]} if role == "evaluator" else {})}
    with pytest.raises(errors.InputError, match=message):
        training.run(
            tiny_job.MODEL,
            train=training.Source((str(tiny_data[0]),)),
            evaluation=training.Source((f"{tmp_path}/{evaluation}",)),
            environment={
                "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": 0}}),
                "PACELINE_CHECKPOINT_DIR": str(tmp_path / "checkpoints"),
            },
        )
    assert not (tmp_path / "checkpoints").exists()
