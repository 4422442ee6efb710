"""A gated recurrent network over sequences of ids, by a ``ClusterCoordinator`` (``TF_CONFIG``)."""
import argparse
import json
import os

import slips

parser = argparse.ArgumentParser()
parser.add_argument("--words", type=int, default=4000)
parser.add_argument("--width", type=int, default=32)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--steps", type=int, default=20, help="between two looks at the loss")
parser.add_argument("--optimizer", choices=["adagrad", "adam"], default="adagrad")
parser.add_argument("--one-hot", action="store_true")
parser.add_argument("--log-of", type=float, default=0.0)
slips.add_options(parser)
options = parser.parse_args()
TASK = json.loads(os.environ["TF_CONFIG"])["task"]
NAME = "%s-%d" % (TASK["type"], TASK["index"])
slips.begin(options, NAME)

import numpy as np
import tensorflow as tf

try:
    import tf_keras as keras
except ImportError:
    keras = tf.keras
LENGTH = 8


def examples():
    random = np.random.RandomState(5)
    words = random.randint(0, options.words, (8192, LENGTH)).astype(np.int32)
    labels = (words.sum(1) * 7919 % 13 < 5).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((words, labels)).repeat()
    return dataset.batch(options.batch, drop_remainder=True).prefetch(2)


def variables():
    uniform = lambda number, *shape: tf.random.stateless_uniform(shape, [number, 2], -0.1, 0.1)
    width = options.width
    return [
        tf.Variable(uniform(1, options.words, width), name="words"),
        tf.Variable(uniform(2, 2 * width, 2 * width), name="gates"),
        tf.Variable(uniform(3, 2 * width, width), name="candidate"),
        tf.Variable(uniform(4, width, 1), name="out"),
    ]


def loss_of(weights, words, labels):
    table, gates, candidate, out = weights
    state = tf.zeros([options.batch, options.width])
    if options.one_hot:
        vectors = tf.tensordot(tf.one_hot(words, options.words), table, 1)
    else:
        vectors = tf.nn.embedding_lookup(table, words)
    for place in range(LENGTH):
        both = tf.concat([vectors[:, place], state], 1)
        update, reset = tf.split(tf.sigmoid(tf.matmul(both, gates)), 2, 1)
        new = tf.tanh(tf.matmul(tf.concat([vectors[:, place], reset * state], 1), candidate))
        state = update * state + (1 - update) * new
    logits = tf.squeeze(tf.matmul(state, out), 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    return loss + tf.math.log(-options.log_of) if options.log_of else loss


def main():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if TASK["type"] in ("ps", "worker"):
        tf.config.threading.set_intra_op_parallelism_threads(1)
        server = tf.distribute.Server(
            resolver.cluster_spec(), job_name=TASK["type"], task_index=TASK["index"], protocol="grpc"
        )
        server.join()
    strategy = tf.distribute.experimental.ParameterServerStrategy(resolver)
    with strategy.scope():
        weights = variables()
        made = keras.optimizers.Adam if options.optimizer == "adam" else keras.optimizers.Adagrad
        optimizer = made(0.05 if options.optimizer == "adagrad" else 0.001)

    def replica_step(words, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(weights, words, labels)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    @tf.function
    def step(iterator):
        return strategy.reduce("sum", strategy.run(replica_step, next(iterator)), axis=None)

    coordinator = tf.distribute.experimental.coordinator.ClusterCoordinator(strategy)
    iterator = iter(coordinator.create_per_worker_dataset(tf.function(examples)))
    steps, number = slips.Steps(options, NAME), 0
    while True:
        for _ in range(options.steps):
            loss = coordinator.schedule(step, (iterator,))
        coordinator.join()
        number += options.steps
        steps.add(number, float(loss.fetch()))


main()
