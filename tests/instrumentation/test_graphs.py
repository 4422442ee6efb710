"""What a graph shows of a run's batch, in graphs that TensorFlow builds."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow
BATCHES = """
import json
import tensorflow.compat.v1 as tf
from paceline_instrumentation import graphs

tf.disable_v2_behavior()


def dataset(size=16, drop=True):
    return tf.data.Dataset.from_tensors([1.0, 2.0]).repeat().batch(size, drop_remainder=drop)


def iterated(drop=True):
    return tf.data.make_one_shot_iterator(dataset(drop=drop)).get_next()


def queued():
    return tf.train.batch([tf.random_uniform([2])], batch_size=16, num_threads=1, capacity=64)


def dropped_out():
    keep = tf.placeholder(tf.float32, name="keep_prob")  # Many scripts give no shape.
    return tf.nn.dropout(iterated(), rate=1 - keep)


def dropped_out_of_a_queue():
    return tf.nn.dropout(queued(), rate=1 - tf.placeholder_with_default(1.0, []))


def of_a_handle():
    handle = tf.placeholder(tf.string, name="handle")
    return tf.data.Iterator.from_string_handle(handle, tf.float32, [16, 2]).get_next()


def rows_and_a_flag():
    training = tf.placeholder(tf.bool, [], name="is_training")
    return iterated(drop=False) * tf.cast(training, tf.float32)


def given():
    return tf.placeholder(tf.float32, [None, 2], name="x")


def given_with_default():
    return tf.placeholder_with_default(tf.ones([4, 2]), [4, 2])


def given_serialized():
    texts = tf.placeholder(tf.string, [None], name="texts")
    return tf.parse_example(texts, {"x": tf.FixedLenFeature([2], tf.float32)})["x"]


def multiplied_by_batches():
    return tf.matmul(tf.matmul(iterated(drop=False)[None], tf.ones([1, 2, 2]))[0], tf.ones([2, 2]))


def parsed_examples(features):
    texts = tf.constant([tf.train.Example().SerializeToString()] * 3)
    return tf.parse_example(texts, features)


def parsed():
    found = parsed_examples({"x": tf.FixedLenFeature([2], tf.float32, [0.0, 0.0])})
    return found["x"]


def parsed_sparse():
    found = parsed_examples({"x": tf.VarLenFeature(tf.float32)})
    return tf.sparse_tensor_to_dense(found["x"])[:, :0] @ tf.ones([0, 2])


def parsed_single():
    text = tf.train.Example().SerializeToString()
    return tf.io.parse_single_example(text, {"x": tf.FixedLenFeature([2], tf.float32, [0.0, 0.0])})["x"][None]


def constant_and_a_rate():
    return tf.ones([4, 2]) * tf.placeholder(tf.float32, [], name="rate")


"""
REPORT = """
def described(build):
    with tf.Graph().as_default() as graph:
        weights = tf.get_variable("w", [2, 1])
        loss = tf.reduce_sum(tf.matmul(build(), weights), name="loss")
        step = tf.train.create_global_step()
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        facts = graphs.Facts()
        names = {each.name for each in graph.get_operations() if "gradients" in each.name}
        facts.add_gradients(graph, graphs.Gradients(loss.name, names, {}))
        run, _ = graphs.training_run(graph, [train], [], facts)
        return run.described().partition("batch: ")[2]


print(json.dumps({name: described(build) for name, build in list(globals().items()) if name in NAMES}))
"""


def described(runner, code: str, names: set[str]) -> dict[str, str]:
    """Build a graph with each of these functions; return what is said of each batch."""
    done = runner.code(code + f"NAMES = {names}\n" + REPORT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_batch_is_fed_only_where_the_graph_has_none_and_something_with_rows_is_fed(runner):
    expected = {
        "iterated": "of 16 examples",
        "queued": "of 16 examples",
        "dropped_out": "of 16 examples",
        "dropped_out_of_a_queue": "of 16 examples",
        "of_a_handle": "of 16 examples",
        "rows_and_a_flag": "IteratorGetNext:0",
        "given": "fed",
        "given_with_default": "fed",
        "given_serialized": "fed",
        "constant_and_a_rate": "not seen",
    }
    assert described(runner, BATCHES, {*expected}) == expected


def test_what_has_another_first_dimension_is_no_batch(runner):
    expected = {
        "multiplied_by_batches": "IteratorGetNext:0",
        "parsed": "of 3 examples",
        "parsed_sparse": "not seen",
        "parsed_single": "not seen",
    }
    assert described(runner, BATCHES, {*expected}) == expected


SPARSE = """
import sys
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
ids = tf.sparse_placeholder(tf.int64, name="ids")
labels = tf.placeholder(tf.float32, [None, 1], name="labels")
table = tf.get_variable("table", [50, 1])
loss = tf.reduce_mean(tf.square(tf.nn.embedding_lookup_sparse(table, ids, None) - labels))
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
where = np.array([[row, column] for row in range(4) for column in range(10)], np.int64)
values = np.arange(40, dtype=np.int64)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    feed = {ids: tf.SparseTensorValue(where, values, (4, 10)), labels: [[1.0]] * 4}
    if sys.argv[1] == "run":
        session.run(train, feed)
    else:
        from tensorflow.core.protobuf import config_pb2
        fed = ["ids/indices:0", "ids/values:0", "ids/shape:0", labels.name]
        call = session._make_callable_from_options(config_pb2.CallableOptions(feed=fed, target=[train.name]))
        call(where, values, np.array([4, 10], np.int64), np.ones([4, 1], np.float32))
"""


@pytest.mark.parametrize("way", ["run", "call"])
def test_the_parts_of_a_sparse_tensor_that_is_fed_are_no_batch(runner, way):
    done = runner.run("-c", SPARSE, way)
    assert done.returncode == 0, done.stderr
    assert [each["examples"] for each in runner.reports("step")] == [4]
