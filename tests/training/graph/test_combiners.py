"""Features of several values, against plain TensorFlow in one process."""

import dataclasses
import itertools

import numpy as np
import pytest
from support import nights

from paceline.training import blocks, clusters, features, settings

pytestmark = pytest.mark.slow

ALONE = clusters.ClusterTask({"worker": ("localhost:0",)}, "worker", 0)
SINGLE = features.Identity("single", 7)
OTHER = features.Identity("other", 5)
SUM = features.Several(features.Identity("sum", 40), 4, "sum")
MEAN = features.Several(features.Identity("mean", 30), 3, "mean")
SQRTN = features.Several(features.Identity("sqrtn", 20), 5, "sqrtn")
APART = features.Several(features.Identity("apart", 9), 2, None)
COLUMNS = (SUM, SINGLE, MEAN, APART, OTHER, SQRTN)
RATE = 0.1
CHOSEN = settings.Settings(
    batch_size=16,
    optimizer=settings.Optimizer("momentum", RATE),
    wide_optimizer=settings.Optimizer("momentum", RATE),
    embedding_dimension=3,
)
CUTS = {
    "whole": settings.PartitioningSettings("none"),
    "hashed": settings.PartitioningSettings("fixed", "hashed", shards=3),
}


class Mixed:
    """Wide over some features, deep over all of them in another order; every vector has its own weight."""

    def __init__(self, columns=COLUMNS):
        self.features = features.FeatureSet((features.Numeric("x"),), columns, features.Label("l"))
        self.wide = [column for column in (SQRTN, SINGLE) if column in columns]

    def logits(self, parts: blocks.Blocks):
        import tensorflow as tf

        vectors = parts.embed("deep", tuple(reversed(self.features.categorical)), deviation=0.5)
        logits = tf.reduce_sum(parts.dense("layer", blocks.flat(vectors), 4, tf.tanh), axis=1)
        if self.wide:
            weights = parts.embed("wide", tuple(self.wide), 1, deviation=0.5, part="wide")
            logits += tf.reduce_sum(tf.square(weights), [1, 2])
        return logits


def batch(columns=COLUMNS, rows=16):
    """Ids in which values repeat, within an example too; the first example has no value at all."""
    random = np.random.default_rng(0)
    found = []
    for column in columns:
        count = column.length if isinstance(column, features.Several) else 1
        ids = random.integers(0, 4, (rows, count))
        if count > 1 and column.combiner is not None:
            ids[np.arange(count) >= random.integers(0, count + 1, rows)[:, None]] = -1
            ids[0] = -1
        found.append(ids)
    return features.Examples(
        random.normal(size=(rows, 1)).astype(np.float32),
        np.concatenate(found, axis=1).astype(np.int32),
        random.integers(0, 2, rows).astype(np.float32),
    )


def graph_of(model, chosen):
    from paceline.training.graph import graphs

    return graphs.build(model, ALONE, chosen)


def values_of(graph, session):
    """Every variable whole, its rows in their own order, by name."""
    whole = {}
    for each in graph.contents.parameters:
        shard = each.shard
        whole.setdefault(shard.variable.name, np.zeros(shard.variable.shape, np.float32))
        order = [int(shard.layout.row(shard.index, place)) for place in range(shard.rows)]
        whole[shard.variable.name][order] = session.run(each.variable)
    return whole


def tables_of(graph, values):
    """The values of each feature by embedding, cut out of its table."""
    found = {}
    for table in graph.tables:
        starts = itertools.accumulate((column.rows for column in table.columns), initial=0)
        for column, start in zip(table.columns, starts, strict=False):
            for name, embedding in table.embeddings.items():
                found[embedding.name, column.name] = values[name][start : start + column.rows]
    return found


def plain(model, examples, tables, kernel, bias):
    """Loss and gradients by TensorFlow's own lookups, a table for each feature."""
    import tensorflow as tf

    variables = {key: tf.Variable(value) for key, value in tables.items()}
    weights = [tf.Variable(kernel), tf.Variable(bias)]
    places, start = {}, 0
    for column in model.features.categorical:
        count = column.length if isinstance(column, features.Several) else 1
        places[column] = examples.ids[:, start : start + count]
        start += count

    def vectors(embedding, column):
        table, ids = variables[embedding, column.name], places[column]
        if not isinstance(column, features.Several) or column.combiner is None:
            found = tf.nn.embedding_lookup(table, ids)
            return tf.reshape(found, [len(ids), -1])
        indices = np.argwhere(ids >= 0)
        sparse = tf.SparseTensor(indices, ids[tuple(indices.T)].astype(np.int64), ids.shape)
        return tf.nn.safe_embedding_lookup_sparse(table, sparse, combiner=column.combiner)

    with tf.GradientTape() as tape:
        side_by_side = [vectors("deep", column) for column in reversed(model.features.categorical)]
        hidden = tf.tanh(tf.matmul(tf.concat(side_by_side, axis=1), weights[0]) + weights[1])
        logits = tf.reduce_sum(hidden, axis=1)
        for column in model.wide:
            logits += tf.reduce_sum(tf.square(vectors("wide", column)), axis=1)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=examples.labels, logits=logits)
        loss = tf.reduce_mean(losses)
    found = tape.gradient(loss, [*variables.values(), *weights])
    gradients = [tf.convert_to_tensor(each).numpy() for each in found]
    return loss.numpy(), dict(zip(variables, gradients, strict=False)), gradients[-2:]


SOME = {"mixed": COLUMNS, "several alone": (MEAN, SUM), "sums alone": (SUM,), "apart": (APART, SINGLE)}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("fused", nights.but([True, False], often=[True]))
@pytest.mark.parametrize("columns", SOME)
def test_values_and_gradients_are_those_of_plain_tensorflow(columns, fused, cut):
    """Momentum's first step is the learning rate times the gradient."""
    import tensorflow.compat.v1 as tf1

    model, examples = Mixed(SOME[columns]), batch(SOME[columns])
    graph = graph_of(model, dataclasses.replace(CHOSEN, fused_tables=fused, partitioning=CUTS[cut]))
    feed = dict(zip(graph.inputs, examples, strict=True))
    with tf1.Session(graph=graph.graph) as session:
        session.run(graph.initialise)
        before = values_of(graph, session)
        loss = session.run(graph.loss, feed)
        session.run(graph.updates, feed)
        after = values_of(graph, session)
    tables = tables_of(graph, before)
    expected, gradients, weights = plain(
        model, examples, tables, before["layer/kernel"], before["layer/bias"]
    )
    assert loss == pytest.approx(expected, rel=1e-5)
    changed = tables_of(graph, after)
    for key, gradient in gradients.items():
        np.testing.assert_allclose(tables[key] - changed[key], RATE * gradient, rtol=1e-3, atol=1e-6)
        assert np.abs(gradient[:4]).max() > 1e-4
        assert (changed[key][4:] == tables[key][4:]).all()
    for name, gradient in zip(("layer/kernel", "layer/bias"), weights, strict=True):
        np.testing.assert_allclose(before[name] - after[name], RATE * gradient, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("optimizer", ["adagrad", "ftrl", "lazy-adam", "adam", "adadelta"])
def test_a_batch_without_any_value_changes_no_row(optimizer):
    import tensorflow.compat.v1 as tf1

    model = Mixed((MEAN, SUM))
    examples = batch((MEAN, SUM))
    examples.ids[:] = -1
    graph = graph_of(model, dataclasses.replace(CHOSEN, optimizer=settings.Optimizer(optimizer, RATE)))
    feed = dict(zip(graph.inputs, examples, strict=True))
    with tf1.Session(graph=graph.graph) as session:
        session.run(graph.initialise)
        before = values_of(graph, session)
        session.run(graph.updates, feed)
        after = values_of(graph, session)
    np.testing.assert_array_equal(before["deep"], after["deep"])
    assert (before["layer/bias"] != after["layer/bias"]).any()


def test_features_of_one_value_cost_no_operation_for_padding():
    operations = {each.type for each in graph_of(Mixed((SINGLE, OTHER)), CHOSEN).graph.get_operations()}
    assert not operations & {"Where", "SparseSegmentSumWithNumSegments", "Bincount"}
    several = {each.type for each in graph_of(Mixed((SINGLE, MEAN)), CHOSEN).graph.get_operations()}
    assert several & {"Where"}
