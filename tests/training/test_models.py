import dataclasses
import itertools

import numpy as np
import pytest

from paceline.training import clusters, features, settings

pytestmark = pytest.mark.slow

ALONE = clusters.ClusterTask({"worker": ("localhost:0",)}, "worker", 0)
COLUMNS = tuple(features.Identity(f"f{i}", rows) for i, rows in enumerate((30, 20, 10)))
FEATURES = features.FeatureSet((features.Numeric("x"), features.Numeric("y")), COLUMNS, features.Label("l"))
CHOSEN = settings.Settings(
    batch_size=16,
    optimizer=settings.Optimizer("lazy-adam", 0.02),
    embedding_dimension=4,
    hidden_units=(16, 8),
)


def examples(rows=512):
    """Clicks that depend on a pair of features: what a model of their products can learn."""
    random = np.random.default_rng(0)
    ids = np.stack([random.integers(0, column.rows, rows) for column in COLUMNS], axis=1).astype(np.int32)
    odd = (ids[:, 0] + ids[:, 1]) % 2
    labels = (random.random(rows) < 0.1 + 0.8 * odd).astype(np.float32)
    return features.Examples(random.normal(size=(rows, 2)).astype(np.float32), ids, labels)


def models():
    from paceline import training

    return {
        "wide and deep": training.WideAndDeep(FEATURES),
        "deepfm": training.DeepFM(FEATURES),
        "dcn": training.DCN(FEATURES),
        "dcn of whole matrices": training.DCN(FEATURES, crosses=1, rank=None),
        "dlrm": training.DLRM(FEATURES),
    }


@pytest.mark.parametrize("name", ["wide and deep", "deepfm", "dcn", "dcn of whole matrices", "dlrm"])
def test_a_model_learns_a_pair_of_features(name):
    import tensorflow.compat.v1 as tf1

    from paceline.training.graph import graphs

    graph = graphs.build(models()[name], ALONE, CHOSEN)
    feed = dict(zip(graph.inputs, examples(), strict=True))
    with tf1.Session(graph=graph.graph) as session:
        session.run(graph.initialise)
        assert session.run(graph.probabilities, feed).shape == (512,)
        first = session.run(graph.loss, feed)
        for _ in range(150):
            session.run(graph.updates, feed)
        assert session.run(graph.loss, feed) < 0.75 * first


@pytest.mark.parametrize("name", ["WideAndDeep", "DeepFM", "DCN", "DLRM"])
def test_a_feature_may_have_a_vector_for_each_of_its_ids(name):
    import tensorflow.compat.v1 as tf1

    from paceline import training
    from paceline.training.graph import graphs

    several = features.Several(COLUMNS[0], length=3, combiner=None)
    known = features.FeatureSet((features.Numeric("x"),), (several, COLUMNS[1]), features.Label("l"))
    graph = graphs.build(getattr(training, name)(known), ALONE, CHOSEN)
    ids = np.zeros((8, 4), np.int32)
    values = features.Examples(np.zeros((8, 1), np.float32), ids, np.zeros(8, np.float32))
    with tf1.Session(graph=graph.graph) as session:
        session.run(graph.initialise)
        feed = dict(zip(graph.inputs, values, strict=True))
        assert session.run(graph.probabilities, feed).shape == (8,)
        session.run(graph.updates, feed)


def vectors():
    return np.random.default_rng(0).normal(size=(5, 6, 3)).astype(np.float32)


def test_products_of_pairs():
    import tensorflow.compat.v1 as tf1

    from paceline.training.models import deepfm, dlrm

    given = vectors()
    products = np.stack(
        [(given[:, i] * given[:, j]).sum(1) for i, j in itertools.combinations(range(6), 2)], axis=1
    )
    with tf1.Graph().as_default(), tf1.Session() as session:
        np.testing.assert_allclose(session.run(deepfm.pairs(given)), products.sum(1), rtol=1e-4, atol=1e-5)
        found = session.run(dlrm.dots(given))
    assert found.shape == (5, 15)
    np.testing.assert_allclose(np.sort(found, axis=1), np.sort(products, axis=1), rtol=1e-4, atol=1e-5)


def test_two_parameters_of_one_name_are_refused():
    from paceline.training import blocks, errors
    from paceline.training.graph import graphs

    class Twice:
        features = FEATURES

        def logits(self, parts: blocks.Blocks):
            return parts.weight("bias", (1,)) + parts.weight("bias", (1,))

    with pytest.raises(errors.SettingsError, match="two parameters with the name 'bias'"):
        graphs.build(Twice(), ALONE, CHOSEN)


def test_a_parameter_without_use_is_refused():
    from paceline.training import blocks, errors
    from paceline.training.graph import graphs

    class Idle:
        features = FEATURES

        def logits(self, parts: blocks.Blocks):
            parts.weight("idle", (3,))
            return parts.weight("bias", (1,)) + parts.numeric[:, 0]

    with pytest.raises(errors.SettingsError, match="asks for the parameter 'idle' and does not use it"):
        graphs.build(Idle(), ALONE, CHOSEN)


@pytest.mark.parametrize(("fused", "error"), [(True, 1e-3), (False, 2e-2)])
def test_gradients_are_clipped_together(fused, error):
    """Momentum's first step is the learning rate times the gradient, so its length shows the norm."""
    import tensorflow.compat.v1 as tf1

    from paceline import training
    from paceline.training.graph import graphs

    def moved(clip_norm):
        optimizer = settings.Optimizer("momentum", 1.0)
        chosen = dataclasses.replace(
            CHOSEN, optimizer=optimizer, wide_optimizer=optimizer, clip_norm=clip_norm, fused_tables=fused
        )
        graph = graphs.build(training.WideAndDeep(FEATURES), ALONE, chosen)
        variables = [each.variable for each in graph.contents.parameters]
        feed = dict(zip(graph.inputs, examples(), strict=True))
        with tf1.Session(graph=graph.graph) as session:
            session.run(graph.initialise)
            before = session.run(variables)
            session.run(graph.updates, feed)
            changes = [a - b for a, b in zip(session.run(variables), before, strict=True)]
        return np.sqrt(sum((change.astype(np.float64) ** 2).sum() for change in changes))

    free = moved(None)
    assert moved(2 * free) == pytest.approx(free, rel=error)
    assert moved(free / 4) == pytest.approx(free / 4, rel=error)
