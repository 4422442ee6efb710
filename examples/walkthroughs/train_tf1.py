"""A click model as scripts of TensorFlow 1 are written. Nothing of Paceline is in it.

Flags, ``replica_device_setter`` and ``MonitoredTrainingSession``, one replica of the graph in each worker.
There are far more users than ads and pages, so one table is far larger than the others.
"""

import argparse

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

parser = argparse.ArgumentParser()
parser.add_argument("--ps_hosts", required=True)
parser.add_argument("--worker_hosts", required=True)
parser.add_argument("--job_name", required=True)
parser.add_argument("--task_index", type=int, required=True)
parser.add_argument("--steps", type=int, default=1_000_000)
FLAGS = parser.parse_args()

TABLES = {"user": (700_000, 48), "ad": (4_000, 8), "page": (1_000, 8)}  # rows, floats of each
HIDDEN, BATCH = 32, 4096

cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()

own = f"/job:worker/task:{FLAGS.task_index}"
with tf.device(tf.train.replica_device_setter(worker_device=own, cluster=cluster)):
    step = tf.train.get_or_create_global_step()
    ids = {name: tf.placeholder(tf.int64, [None], name=name) for name in TABLES}
    clicked = tf.placeholder(tf.float32, [None], name="clicked")
    vectors = []
    for name, shape in TABLES.items():
        initial = tf.random_uniform_initializer(-0.05, 0.05)
        table = tf.get_variable(f"{name}_vectors", shape, initializer=initial)
        vectors.append(tf.nn.embedding_lookup(table, ids[name]))
    first = tf.get_variable("first", [sum(width for _, width in TABLES.values()), HIDDEN])
    second = tf.get_variable("second", [HIDDEN, 1])
    hidden = tf.nn.relu(tf.matmul(tf.concat(vectors, 1), first))
    logits = tf.squeeze(tf.matmul(hidden, second), 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logits))
    train = tf.train.AdagradOptimizer(0.05).minimize(loss, global_step=step)

random = np.random.RandomState(FLAGS.task_index)
with tf.train.MonitoredTrainingSession(
    master=server.target,
    is_chief=FLAGS.task_index == 0,
    hooks=[tf.train.StopAtStepHook(last_step=FLAGS.steps)],
    config=tf.ConfigProto(device_filters=["/job:ps", own]),
) as session:
    while not session.should_stop():
        batch = {name: random.randint(0, rows, BATCH) for name, (rows, _) in TABLES.items()}
        odds = (batch["user"] * 2654435761 + batch["ad"] * 40503) % 1009 / 1009.0
        feeds = {ids[name]: batch[name] for name in TABLES}
        feeds[clicked] = (random.rand(BATCH) < 0.1 + 0.5 * odds).astype(np.float32)
        _, value, number = session.run([train, loss, step], feeds)
        if number % 200 == 0:
            print(f"step {number} loss {value:.4f}", flush=True)
