"""A ``Supervisor`` with a loop of fed batches between graph replicas, as scripts of TensorFlow 1.0 had it."""
import argparse
import time

import numpy as np

try:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
except ImportError:  # before 1.13
    import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--ps_hosts", default="")
parser.add_argument("--worker_hosts", default="")
parser.add_argument("--job_name", default="worker")
parser.add_argument("--task_index", type=int, default=0)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--width", type=int, default=4)
options = parser.parse_args()
BATCH = 50


def main():
    target, device = "", None
    if options.ps_hosts:
        cluster = tf.train.ClusterSpec(
            {"ps": options.ps_hosts.split(","), "worker": options.worker_hosts.split(",")}
        )
        server = tf.train.Server(cluster, job_name=options.job_name, task_index=options.task_index)
        if options.job_name == "ps":
            server.join()
        target = server.target
        device = tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % options.task_index, cluster=cluster
        )
    with tf.Graph().as_default(), tf.device(device):
        ids = tf.placeholder(tf.int32, [BATCH], name="ids")
        labels = tf.placeholder(tf.float32, [BATCH], name="labels")
        global_step = tf.Variable(0, name="global_step", trainable=False)
        table = tf.Variable(tf.zeros([1000, options.width]), name="table")
        weights = tf.Variable(tf.ones([options.width, 1]), name="weights")
        logits = tf.squeeze(tf.matmul(tf.nn.embedding_lookup(table, ids), weights), [1])
        cost = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        train = tf.train.AdagradOptimizer(0.1).minimize(cost, global_step=global_step)
        supervisor = tf.train.Supervisor(
            is_chief=options.task_index == 0, logdir=None, summary_op=None, global_step=global_step,
            recovery_wait_secs=1,
        )  # fmt: skip
        random = np.random.RandomState(1)
        with supervisor.managed_session(target) as session:
            number, made = 0, 0
            while not supervisor.should_stop() and number < options.steps:
                rows = random.randint(0, 1000, BATCH)
                _, value, number = session.run(
                    [train, cost, global_step], {ids: rows, labels: (rows % 3 == 0).astype(np.float32)}
                )
                made += 1
                print("step %d loss %.9g" % (number, value), flush=True)
                if made % 10 == 0:
                    print("made %d at %.6f" % (made, time.time()), flush=True)
        supervisor.stop()


main()
