"""A parameter server and a worker in one process train two tables in a session; TensorFlow 1.4 and later.

It prints the losses, and of which types the values are that the two send each other.
"""
import argparse
import json

import numpy as np
import tensorflow

tf = tensorflow.compat.v1 if hasattr(tensorflow, "compat") and hasattr(tensorflow.compat, "v1") else tensorflow
if hasattr(tf, "disable_v2_behavior"):
    tf.disable_v2_behavior()
parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--ports", required=True, help="two, separated by a comma")
options = parser.parse_args()
ROWS, WIDTH = 60, 5


def cluster():
    one, other = ("localhost:" + port for port in options.ports.split(","))
    return tf.train.ClusterSpec({"worker": [one], "ps": [other]})


def sent(metadata):
    """The types of matrices that are received from another task, by the receiver."""
    found = {"ps": [], "worker": []}
    for graph in metadata.partition_graphs:
        for node in graph.node:
            if node.op == "_Recv" and node.attr["send_device"].s != node.attr["recv_device"].s:
                kind = tf.as_dtype(node.attr["tensor_type"].type).name
                receiver = node.attr["recv_device"].s.decode()
                if "float" in kind:
                    found["ps" if "/job:ps" in receiver else "worker"].append(kind)
    return {name: sorted(kinds) for name, kinds in found.items()}


def main():
    spec = cluster()
    server = tf.train.Server(spec, job_name="ps", task_index=0)
    worker = tf.train.Server(spec, job_name="worker", task_index=0)
    random = np.random.RandomState(4)
    ids, labels = random.randint(0, ROWS, (32, 2)), random.uniform(-1, 1, 32).astype(np.float32)
    start = tf.constant_initializer(random.uniform(-1, 1, (ROWS, WIDTH)))
    with tf.device(tf.train.replica_device_setter(cluster=spec)):
        one = tf.get_variable("one", [ROWS, WIDTH], initializer=start)
        other = tf.get_variable("other", [ROWS, WIDTH], initializer=start)
        rows = tf.nn.embedding_lookup(one, tf.constant(ids))
        again = tf.nn.embedding_lookup(other, tf.constant(ids[:, 0]))
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(rows, [1, 2]) * tf.reduce_sum(again, 1) - labels))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    losses, metadata = [], tf.RunMetadata()
    with tf.Session(worker.target) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(options.steps):
            losses.append(float(session.run([loss, train])[0]))
        session.run(train, options=tf.RunOptions(output_partition_graphs=True), run_metadata=metadata)
        kinds = one.dtype.base_dtype.name
    print("result %s" % json.dumps({"losses": losses, "sent": sent(metadata), "kept": kinds}), flush=True)
    assert server


main()
