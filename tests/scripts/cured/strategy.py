"""``Model.fit`` or a loop under a strategy, whose servers (``TF_CONFIG``) are all in this process.

It prints where the variables are and what was learned, and saves a checkpoint. Initial values are constant, and
one worker takes all steps, so that they are the same wherever the variables lie.
"""
import argparse
import importlib
import json
import os

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--keras", default="tensorflow.keras")
parser.add_argument("--loop", action="store_true", help="a variable and a loop of the script's own")
parser.add_argument("--save")
parser.add_argument("--cut", type=int, help="a partitioner of the script's own")
options = parser.parse_args()
ROWS, BATCH, STEPS = 4000, 16, 12


def dataset(context=None):
    random = np.random.RandomState(0)
    ids = random.randint(0, ROWS, (BATCH * STEPS * 4, 2)).astype(np.int64)
    labels = (ids.sum(1) % 3 == 0).astype(np.float32)[:, None]
    return tf.data.Dataset.from_tensor_slices((ids, labels)).map(lambda ids, label: (ids, label)).repeat().batch(BATCH)


def start(rows):
    return np.linspace(-1, 1, rows * 4).reshape(rows, 4).astype(np.float32)


def places(variables):
    parts = [part for each in variables for part in getattr(each, "variables", [each])]
    return {each.name: each.device for each in parts}


def fit(strategy):
    keras = importlib.import_module(options.keras)
    with strategy.scope():
        ids = keras.Input((2,), dtype=tf.int64)
        first, second = (
            keras.layers.Embedding(rows, 4, name=name)(ids % rows) for rows, name in ((ROWS, "large"), (300, "small"))
        )
        hidden = keras.layers.Flatten()(keras.layers.Concatenate()([first, second]))
        model = keras.Model(ids, keras.layers.Dense(1, "sigmoid", kernel_initializer="ones", name="dense")(hidden))
        model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy")
    whole = [(name, rows) for name, rows in (("large", ROWS), ("small", 300))]
    for name, rows in whole:
        values, begin = start(rows), 0
        for part in model.get_layer(name).variables:
            end = begin + part.shape[0]
            part.assign(values[begin:end])
            begin = end
    history = model.fit(
        keras.utils.experimental.DatasetCreator(dataset), steps_per_epoch=STEPS, epochs=2, verbose=0
    )
    slots = model.optimizer.variables
    return {
        "losses": [float(each) for each in history.history["loss"]],
        "places": places(model.variables),
        "slots": places([each for each in (slots() if callable(slots) else slots) if each.shape.rank]),
        "steps_per_execution": int(model._steps_per_execution.numpy()),
        "saved": tf.train.Checkpoint(model=model).save(options.save) if options.save else None,
        "names": [name for name, _ in tf.train.list_variables(tf.train.latest_checkpoint(os.path.dirname(options.save)))]
        if options.save
        else None,
    }


def loop(strategy):
    with strategy.scope():
        table = tf.Variable(start(ROWS), name="table")
        weights = tf.Variable(tf.ones([4, 1]), name="weights")
    coordinator = tf.distribute.experimental.coordinator.ClusterCoordinator(strategy)

    @tf.function
    def step(iterator):
        ids, labels = next(iterator)
        with tf.GradientTape() as tape:
            logits = tf.matmul(tf.reduce_sum(tf.nn.embedding_lookup(table, ids), 1), weights)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits))
        for variable, gradient in zip([table, weights], tape.gradient(loss, [table, weights])):
            variable.assign_sub(0.1 * tf.convert_to_tensor(gradient))
        return loss

    batches = iter(coordinator.create_per_worker_dataset(dataset))
    losses = []
    for _ in range(STEPS):
        losses.append(float(coordinator.schedule(step, args=(batches,)).fetch()))
    return {"losses": losses, "places": places([table, weights])}


def main():
    cluster = tf.train.ClusterSpec(json.loads(os.environ["TF_CONFIG"])["cluster"])
    servers = [
        tf.distribute.Server(cluster, job_name=role, task_index=index, protocol="grpc")
        for role in ("ps", "worker")
        for index in range(cluster.num_tasks(role))
    ]
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc")
    more = {}
    if options.cut:
        more["variable_partitioner"] = tf.distribute.experimental.partitioners.FixedShardsPartitioner(options.cut)
    strategy = tf.distribute.experimental.ParameterServerStrategy(resolver, **more)
    print("result %s" % json.dumps((loop if options.loop else fit)(strategy)), flush=True)
    assert servers


main()
