"""Models of tf_keras on Paceline's tables, against the same models by themselves, in one process."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from support import nights

from paceline.training import clusters, errors, features, settings

pytestmark = pytest.mark.slow

ALONE = clusters.ClusterTask({"worker": ("localhost:0",)}, "worker", 0)
SITE = features.Identity("site", 12)
DEVICE = features.Identity("device", 5)
TAGS = features.Several(features.Identity("tags", 20), 3, None)
NUMBERS = (features.Numeric("price"), features.Numeric("age"), features.Numeric("hour"))
FEATURES = features.FeatureSet(NUMBERS, (TAGS, SITE, DEVICE), features.Label("l"))
RATE = 0.5
CHOSEN = settings.Settings(
    batch_size=16,
    optimizer=settings.Optimizer("momentum", RATE),
    partitioning=settings.PartitioningSettings("fixed", shards=2),
)
INPUTS = {"numbers": ("age", "price")}


def functional(activation="sigmoid", **embedding):
    import tf_keras as keras

    site = keras.Input((1,), name="site")
    device = keras.Input((), dtype="int32", name="device")
    tags = keras.Input((3,), dtype="int64", name="tags")
    numbers = keras.Input((2,), name="numbers")
    hour = keras.Input((1,), name="hour")
    small = keras.initializers.Constant(0.01)
    parts = [
        keras.layers.Flatten()(keras.layers.Embedding(12, 4, name="site_vectors", **embedding)(site)),
        keras.layers.Embedding(5, 4, name="device_vectors", **embedding)(device),
        keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(20, 4, name="tag_vectors")(tags)),
        keras.layers.Flatten()(keras.layers.Embedding(12, 1, embeddings_initializer=small)(site)),
        keras.layers.Embedding(5, 4, name="device_again")(device),
        numbers,
        hour,
    ]
    hidden = keras.layers.Dense(8, activation="swish")(keras.layers.Concatenate()(parts))
    twice = keras.layers.Dense(8, activation="tanh", name="twice")
    hidden = keras.layers.LayerNormalization()(twice(twice(hidden)))
    hidden = keras.layers.BatchNormalization(trainable=False)(hidden)
    output = keras.layers.Dense(1, activation=activation)(hidden)
    return keras.Model([site, numbers, tags, device, hour], output)


def of_dicts():
    """The inputs of the model are a dict, the model is within another, and some of it is TensorFlow's own."""
    import tensorflow as tf
    import tf_keras as keras

    tower = keras.Sequential([keras.layers.Dense(8, activation="relu"), keras.layers.Dense(3)])
    asked = {
        "where": keras.Input((1,), name="a", dtype="int32"),
        "labels": keras.Input((3,), name="b", dtype="int32"),
        "numbers": keras.Input((2,), name="c"),
    }
    where = tf.squeeze(keras.layers.Embedding(15, 4)(asked["where"]), axis=1)
    labels = tf.reduce_max(keras.layers.Embedding(20, 4)(asked["labels"]), axis=1) * tf.constant(0.5)
    hidden = tower(tf.concat([where * labels, asked["numbers"]], axis=1))
    return keras.Model(asked, tf.reduce_sum(hidden, axis=1, keepdims=True))


def subclassed():
    import tensorflow as tf
    import tf_keras as keras

    class Mine(keras.Model):
        def __init__(self):
            super().__init__()
            self.tables = {"site": keras.layers.Embedding(12, 4), "device": keras.layers.Embedding(5, 4)}
            self.several = keras.layers.Embedding(20, 4)
            self.tower = [keras.layers.Dense(6, activation="relu") for _ in range(2)]
            self.own = [self.add_weight(shape=(6,), name="own", initializer="random_normal")]
            self.scale = self.add_weight(shape=(), name="scale", initializer="ones")
            self.last = keras.layers.Dense(1, activation="sigmoid", trainable=False)

        def call(self, asked):
            found = [table(asked[name]) for name, table in self.tables.items()]
            found.append(tf.reduce_sum(self.several(asked["tags"]), axis=1))
            hidden = tf.concat(found, axis=1)
            for layer in self.tower:
                hidden = layer(hidden)
            return self.last(self.scale * hidden * self.own[0])[:, 0]

    model = Mine()
    model({"site": np.array([1, 2]), "device": np.array([0, 1]), "tags": np.zeros((2, 3), np.int32)})
    return model


def sequential():
    import tf_keras as keras

    return keras.Sequential(
        [
            keras.layers.Embedding(20, 4, input_length=3, name="tag_vectors"),
            keras.layers.Flatten(),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )


MODELS = {
    "functional": (functional, INPUTS),
    "subclassed": (subclassed, None),
    "functional logit": (lambda: functional(None), INPUTS),
    "of dicts": (of_dicts, {"where": ("site",), "labels": ("tags",), **INPUTS}),
    "sequential": (sequential, {"tag_vectors_input": ("tags",)}),
}


def adapted(model, inputs=None, known=FEATURES):
    from paceline import training

    return training.KerasModel(model, known, inputs)


def batch(rows=16):
    random = np.random.default_rng(0)
    tags = random.integers(0, 9, (rows, 3))
    site, device = random.integers(0, 9, (rows, 1)), random.integers(0, 4, (rows, 1))
    return features.Examples(
        random.normal(size=(rows, 3)).astype(np.float32),
        np.concatenate([tags, site, device], axis=1).astype(np.int32),
        random.integers(0, 2, rows).astype(np.float32),
    )


def given(examples):
    """The same batch as the models of this file take it."""
    tags, site, device = examples.ids[:, :3], examples.ids[:, 3:4], examples.ids[:, 4]
    return {
        "site": site,
        "device": device,
        "tags": tags,
        "numbers": examples.numeric[:, [1, 0]],
        "hour": examples.numeric[:, 2:],
        "where": site,
        "labels": tags,
    }


@pytest.mark.parametrize(
    ("name", "fused"),
    nights.but(
        [*((name, True) for name in MODELS), ("functional", False)],
        often=[("functional", True), ("of dicts", True), ("sequential", True)],
    ),
)
def test_probabilities_and_gradients_are_those_of_the_model(tmp_path, name, fused):
    """Momentum's first step is the learning rate times the gradient."""
    import tensorflow as tf
    import tensorflow.compat.v1 as tf1
    import tf_keras

    from paceline.training.checkpoints import checkpoints
    from paceline.training.graph import graphs

    make, inputs = MODELS[name]
    chosen = dataclasses.replace(CHOSEN, fused_tables=fused)
    tf_keras.utils.set_random_seed(1)  # so that no gradient happens to be next to nothing
    mine, examples = adapted(make(), inputs), batch()
    first = {each.name: each.numpy() for each in mine.model.weights if "embeddings" not in each.name}
    graph = graphs.build(mine, ALONE, chosen)
    before, after = (
        checkpoints.Checkpoints(str(tmp_path / name), graph.contents, 60) for name in ("before", "after")
    )
    before.prepare()
    after.prepare()
    feed = dict(zip(graph.inputs, examples, strict=True))
    with tf1.Session(graph=graph.graph) as session:
        session.run(graph.initialise)
        before.save(session, 0)
        probabilities, loss = session.run([graph.probabilities, graph.loss], feed)
        session.run(graph.updates, feed)
        after.save(session, 1)
    model = mine.restore(str(tmp_path / "before"), chosen)
    for each in model.weights:
        if each.name in first:
            np.testing.assert_array_equal(each.numpy(), first[each.name])
        else:
            assert 0 < np.abs(each.numpy()).max() <= 0.05
    with tf.GradientTape() as tape:
        output = tf.reshape(call(model, examples), [-1])
        logit = output if name in ("functional logit", "of dicts") else tf.math.log(output / (1 - output))
        expected = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(examples.labels, logit))
    gradients = [tf.convert_to_tensor(each) for each in tape.gradient(expected, model.trainable_weights)]
    np.testing.assert_allclose(probabilities, tf.sigmoid(logit), rtol=1e-4)
    assert loss == pytest.approx(expected.numpy(), rel=1e-5)
    frozen = {id(each): each.numpy() for each in model.non_trainable_weights}
    wanted = [
        each.numpy() - RATE * gradient.numpy()
        for each, gradient in zip(model.trainable_weights, gradients, strict=True)
    ]
    assert mine.restore(str(tmp_path / "after"), chosen) is model
    for variable, values, gradient in zip(model.trainable_weights, wanted, gradients, strict=True):
        np.testing.assert_allclose(variable.numpy(), values, rtol=1e-3, atol=1e-5, err_msg=variable.name)
        assert np.abs(gradient).max() > 1e-5, variable.name
    assert all((frozen[id(each)] == each.numpy()).all() for each in model.non_trainable_weights)


def call(model, examples):
    known = given(examples)
    (structure,), _ = model.save_spec()
    if isinstance(structure, dict):
        return model({name: known[name].reshape(-1, *each.shape[1:]) for name, each in structure.items()})
    if isinstance(structure, list):
        return model([known[each.name] for each in structure])
    return model(known["tags"])


def of_site(*after, rows=12, **options):
    """An embedding of the sites, some layers, and a dense one."""
    import tf_keras as keras

    site = keras.Input((1,), name="site")
    hidden = keras.layers.Embedding(rows, 4, name="vectors", **options)(site)
    for layer in after:
        hidden = layer(hidden)
    hidden = keras.layers.GlobalAveragePooling1D()(hidden)
    return keras.Model(site, keras.layers.Dense(1)(hidden))


def with_loss():
    import tensorflow as tf
    import tf_keras as keras

    class WithLoss(keras.Model):
        def __init__(self):
            super().__init__()
            self.table = keras.layers.Embedding(12, 1)

        def call(self, asked):
            vectors = self.table(asked["site"])
            self.add_loss(tf.reduce_mean(vectors))
            return tf.reduce_sum(vectors, axis=1)

    model = WithLoss()
    model({"site": np.array([[1], [2]])})
    return model


def shared():
    import tf_keras as keras

    asked = [keras.Input((), name=name) for name in ("site", "device")]
    vectors = keras.layers.Embedding(12, 4, name="vectors")
    return keras.Model(asked, keras.layers.Dense(1)(vectors(asked[0]) + vectors(asked[1])))


def layer(kind, *arguments, **options):
    import tf_keras as keras

    return getattr(keras.layers, kind)(*arguments, **options)


REFUSED = {
    "another class": (object, r"builtins\.object is no model of tf_keras"),
    "masks": (lambda: of_site(mask_zero=True), "input 'site' of the model reads the ids of 'site' otherwise"),
    "a regularizer": (
        lambda: of_site(embeddings_regularizer="l2"),
        r"layer 'vectors' \(Embedding\) adds a loss of its own",
    ),
    "an activity regularizer": (
        lambda: of_site(layer("Dense", 4, activity_regularizer="l2", name="active")),
        r"layer 'active' \(Dense\) adds a loss of its own",
    ),
    "a loss in the call": (with_loss, r"layer 'with_loss' \(WithLoss\) adds a loss of its own"),
    "a constraint": (lambda: of_site(embeddings_constraint="non_neg"), "'vectors/embeddings:0' has a constr"),
    "an initializer": (
        lambda: of_site(embeddings_initializer="glorot_uniform"),
        r"layer 'vectors' \(Embedding\) starts from GlorotUniform; .* RandomUniform",
    ),
    "a frozen table": (lambda: of_site(trainable=False), r"layer 'vectors' \(Embedding\) is not trainable"),
    "a shared table": (shared, r"layer 'vectors' \(Embedding\) looks up both '\w+' and '\w+'"),
    "few rows": (lambda: of_site(rows=11), r"'vectors' \(Embedding\) has 11 rows .* 'site' has 12"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_taken_over_is_refused(name):
    make, message = REFUSED[name]
    with pytest.raises(errors.SettingsError, match=message):
        adapted(make())


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            {"site": ("sites",)},
            "input 'site' of the model reads the feature 'sites', which is .* mean 'site'",
        ),
        ({"site": ("site", "device")}, "so it can read one feature, not 2"),
        ({"site": ("tags",)}, r"looks up 1 ids of an example, and the feature 'tags' has 3"),
    ],
)
def test_an_input_without_its_feature_is_refused(inputs, message):
    with pytest.raises(errors.SettingsError, match=message):
        adapted(of_site(rows=20), inputs)


def test_numbers_without_their_features_are_refused():
    with pytest.raises(
        errors.SettingsError, match=r"input 'numbers' .* takes 2 numbers .* reads 1 features: age"
    ):
        adapted(functional(), {"numbers": ("age",)})


def test_several_values_with_a_combiner_are_one_vector_of_the_model():
    from paceline.training.graph import graphs

    pooled = dataclasses.replace(TAGS, combiner="sum")
    known = features.FeatureSet((), (pooled,), features.Label("l"))
    graph = graphs.build(adapted(of_site(rows=20), {"site": ("tags",)}, known), ALONE, CHOSEN)
    assert [each.shape for each in graph.variables] == [(20, 4), (4, 1), (1,)]


def test_it_runs_on_the_trainer_alone():
    from paceline.training.graph import graphs

    cluster = clusters.ClusterTask({"ps": ("a:1", "b:1"), "worker": ("c:1",)}, "worker", 0)
    graph = graphs.build(adapted(functional(), INPUTS), cluster, CHOSEN)
    devices = {each.name: each.device for each in graph.graph.get_operations() if "keras" in each.name}
    assert {name.partition("/")[0] for name in devices} >= {"keras", "gradients"}
    assert set(devices.values()) == {"/job:worker/task:0"}


def test_it_trains_on_two_parameter_servers(job):
    """Fused tables in hashed parts; the trained values are given back to the model in the script."""
    chosen = {
        "optimizer": {"name": "adagrad", "learning_rate": 0.1},
        "batch_size": 32,
        "epochs": 1000,
        "max_steps": 800,
        "partitioning": {"strategy": "fixed", "rows": "hashed", "shards": 2},
    }
    processes = job(chosen, script="keras_job.py", ps=2, worker=1)
    processes.start_all()
    processes.wait("worker", 0)
    (evaluation,) = processes.reports("worker", 0, "evaluation")
    assert evaluation["auc"] > 0.8
    own = processes.log("worker", 0).partition("the model's own AUC: ")[2].split()[0]
    assert float(own) == pytest.approx(evaluation["auc"], abs=1e-5)


def test_tf_keras_is_imported_for_its_models_alone():
    script = "import sys\nfrom paceline import training\nfrom paceline.training import runs\n"
    check = "assert 'tf_keras' not in sys.modules\ntraining.KerasModel\nassert 'tf_keras' in sys.modules"
    subprocess.run([sys.executable, "-c", script + check], check=True)
