"""Tables on two parameter servers of its own, trained by a session; says in JSON what became of them."""

import argparse
import json
import os

import numpy as np

try:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
except ImportError:  # before 1.13
    import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--ports", required=True, help="of two servers and two workers")
parser.add_argument("--resource", action="store_true")
parser.add_argument("--lookup", default="embedding", choices=("embedding", "gather", "list", "sparse"))
parser.add_argument("--placing", default="setter", choices=("setter", "own", "none", "elsewhere"))
parser.add_argument("--optimizer", default="adam", choices=("adam", "adagrad"))
parser.add_argument("--filters", action="store_true", help="has device filters of its own")
parser.add_argument("--wait", type=float, help="between looks whether a chief is ready")
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--folder", required=True, help="for a checkpoint and what was computed")
asked = parser.parse_args()

ports = ["127.0.0.1:" + port for port in asked.ports.split(",")]
cluster = tf.train.ClusterSpec({"ps": ports[:2], "worker": ports[2:]})
config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=2)
servers = [tf.train.Server(cluster, job_name="ps", task_index=index, config=config) for index in range(2)]
servers.append(tf.train.Server(cluster, job_name="worker", task_index=1, config=config))
server = tf.train.Server(cluster, job_name="worker", task_index=0, config=config)
setter = tf.train.replica_device_setter(
    worker_device="/job:worker/task:0",
    cluster=cluster,
    ps_strategy=(lambda operation: 1) if asked.placing == "own" else None,
)
# The global step comes first, so TensorFlow puts the large table beside the small one.
ROWS = (40, 4000, 30)


def rows_of(table, ids):
    if asked.lookup == "gather":
        return tf.gather(table, ids)
    if asked.lookup == "list":
        return tf.nn.embedding_lookup([table] if hasattr(table, "op") else list(table), ids)
    if asked.lookup == "sparse":
        count = tf.cast(tf.size(ids), tf.int64)
        places = tf.stack([tf.range(count), tf.zeros_like(tf.range(count))], 1)
        sparse = tf.SparseTensor(places, ids, tf.stack([count, 1]))
        return tf.nn.embedding_lookup_sparse(table, sparse, None, combiner="sum")
    return tf.nn.embedding_lookup(table, ids)


tf.set_random_seed(7)
with tf.device(setter if asked.placing in ("setter", "own") else None):
    step = tf.train.get_or_create_global_step()
    ids = tf.placeholder(tf.int64, [None, len(ROWS)])
    labels = tf.placeholder(tf.float32, [None])
    found = []
    with tf.variable_scope("model", use_resource=asked.resource):
        for number, rows in enumerate(ROWS):
            table = tf.get_variable(
                "table_%d" % number, [rows, 8], initializer=tf.random_uniform_initializer(-0.05, 0.05, seed=number)
            )
            found.append(rows_of(table, ids[:, number]))
        weights = tf.get_variable("weights", [8 * len(ROWS), 1], initializer=tf.constant_initializer(0.1))
    logits = tf.squeeze(tf.matmul(tf.concat(found, 1), weights), 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    make = {"adam": tf.train.AdamOptimizer, "adagrad": tf.train.AdagradOptimizer}[asked.optimizer]
    optimizer = make(0.01)
    pairs = optimizer.compute_gradients(loss)
    train = optimizer.apply_gradients(pairs, global_step=step)
if asked.placing == "elsewhere":
    with tf.device("/job:worker/task:1"):
        tf.constant(1.0, name="elsewhere")
large = [
    (gradient, variable)
    for gradient, variable in pairs
    if "table_1" in variable.name and gradient is not None
]
saver = tf.train.Saver()
if asked.filters:
    config.device_filters.append("/job:ps")
    config.device_filters.append("/job:worker/task:0")
creator = tf.train.ChiefSessionCreator(master=server.target, config=config)
if asked.wait is not None:
    tf.train.SessionManager(recovery_wait_secs=asked.wait)
random = np.random.RandomState(1)
losses, history = [], []
with tf.train.MonitoredSession(session_creator=creator) as session:
    first = session.run([variable for _, variable in large])
    for number in range(asked.steps):
        chosen = np.stack([np.minimum(random.pareto(1.0, 64) * 3, rows - 1) for rows in ROWS], 1).astype(
            np.int64
        )
        clicked = (chosen.sum(1) % 3 == 0).astype(np.float32)
        value, _, gradients = session.run(
            [loss, train, [gradient for gradient, _ in large]], {ids: chosen, labels: clicked}
        )
        losses.append(float(value))
        history.append(gradients)
    last = session.run([variable for _, variable in large])
    raw = session._tf_sess() if hasattr(session, "_tf_sess") else session._sess._sess._sess._sess
    saver.save(raw, os.path.join(asked.folder, "model"), write_meta_graph=False)
for number, each in enumerate(large):
    part = [gradients[number] for gradients in history]
    if hasattr(part[0], "values"):
        np.savez(
            os.path.join(asked.folder, "part_%d.npz" % number),
            first=first[number],
            last=last[number],
            **{"rows_%d" % at: one.indices for at, one in enumerate(part)},
            **{"values_%d" % at: one.values for at, one in enumerate(part)},
        )
print(
    json.dumps(
        {
            "losses": losses,
            "devices": {each.op.name: each.device for each in tf.global_variables()},
            "pulled": sorted(
                operation.name
                for operation in tf.get_default_graph().get_operations()
                if operation.type in ("Concat", "ConcatV2") and "/ConcatPartitions" in operation.name
            ),
        }
    )
)
