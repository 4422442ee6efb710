"""A loop of one's own around a ``tf.function``, in one process or by a ``ClusterCoordinator`` (``TF_CONFIG``)."""
import argparse
import json
import os
import time

import numpy as np
import tensorflow as tf

try:
    import tf_keras as keras
except ImportError:
    keras = tf.keras
parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=1)
parser.add_argument("--width", type=int, default=8)
options = parser.parse_args()
STEPS, BATCH = 150, 32


def examples(context=None):
    random = np.random.RandomState(3)
    ids = random.randint(0, 500, 4096).astype(np.int64)
    labels = (ids * 7919 % 13 < 5).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((ids, labels)).repeat().batch(BATCH, drop_remainder=True)


def made():
    table = tf.Variable(tf.random.stateless_uniform([500, options.width], [1, 2], -0.05, 0.05), name="table")
    weights = tf.Variable(tf.ones([options.width, 1]), name="weights")
    optimizer = keras.optimizers.Adagrad(0.1)
    return (table, weights), optimizer


def main():
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    task = config.get("task") if "ps" in config.get("cluster", {}) else None
    strategy = None
    if task is not None:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        if task["type"] in ("ps", "worker"):
            server = tf.distribute.Server(
                resolver.cluster_spec(), job_name=task["type"], task_index=task["index"], protocol="grpc"
            )
            server.join()
        strategy = tf.distribute.experimental.ParameterServerStrategy(resolver)
    if strategy is None:
        variables, optimizer = made()
    else:
        with strategy.scope():
            variables, optimizer = made()

    def replica_step(ids, labels):
        with tf.GradientTape() as tape:
            logits = tf.squeeze(tf.matmul(tf.nn.embedding_lookup(variables[0], ids), variables[1]), 1)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    @tf.function
    def step(iterator):
        ids, labels = next(iterator)
        if strategy is None:
            return replica_step(ids, labels)
        return strategy.reduce("sum", strategy.run(replica_step, (ids, labels)), axis=None)

    if strategy is None:
        iterator = iter(examples())
        for number in range(1, options.rounds * STEPS + 1):
            loss = step(iterator)
            print("step %d loss %.9g" % (number, float(loss)))
            if number % 10 == 0:
                print("made %d at %.6f" % (number, time.time()), flush=True)
            time.sleep(float(os.environ.get("PAUSE", "0")))
    else:
        coordinator = tf.distribute.experimental.coordinator.ClusterCoordinator(strategy)

        @tf.function
        def dataset_fn():
            return examples()

        iterator = iter(coordinator.create_per_worker_dataset(dataset_fn))
        for number in range(1, options.rounds + 1):
            for _ in range(STEPS):
                loss = coordinator.schedule(step, (iterator,))
                time.sleep(float(os.environ.get("PAUSE", "0")))
            coordinator.join()
            print("made %d at %.6f" % (number * STEPS, time.time()), flush=True)
        print("loss %.6f" % float(loss.fetch()))
    print("iterations %d" % int(optimizer.iterations.numpy()), flush=True)


if __name__ == "__main__":
    main()
