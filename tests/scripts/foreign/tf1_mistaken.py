"""A small model between graph replicas, with one of the mistakes that public scripts have."""
import argparse
import os
import sys
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
parser.add_argument("--mistake", required=True)
options = parser.parse_args()
BATCH, WIDTH = 40, 10


def train(cluster, target):
    device = tf.train.replica_device_setter(
        worker_device="/job:worker/task:%d" % options.task_index, cluster=cluster
    )
    with tf.device(None if options.mistake == "forgotten setter" else device):
        x = tf.placeholder(tf.float32, [None, WIDTH])
        y = tf.placeholder(tf.int64, [None])
        w = tf.get_variable("w", [WIDTH, 3], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(x, w))
        )
        step = tf.train.get_or_create_global_step()
        update = tf.train.GradientDescentOptimizer(0.5).minimize(loss, global_step=step)
    random = np.random.RandomState(options.task_index)
    with tf.train.MonitoredTrainingSession(master=target, is_chief=options.task_index == 0) as session:
        made = 0
        while not session.should_stop():
            rows = random.normal(size=(BATCH, WIDTH))
            _, number = session.run([update, step], {x: rows, y: rows[:, :3].argmax(1)})
            made += 1
            if made % 100 == 0:
                print("made %d, at step %d" % (made, number), flush=True)
            crashes = options.mistake == "no checkpoint" and options.task_index == 0
            if crashes and made == 500 and os.environ.get("PACELINE_ATTEMPT") == "1":
                sys.stdout.flush()
                os._exit(1)
            time.sleep(0.005)


def main():
    hosts = {"ps": options.ps_hosts.split(","), "worker": options.worker_hosts.split(",")}
    if options.mistake.startswith("written ports"):
        ports = options.mistake.split()[2:]
        hosts = {"ps": ["localhost:%s" % ports[0]], "worker": ["localhost:%s" % each for each in ports[1:]]}
    cluster = tf.train.ClusterSpec(hosts)
    if options.job_name == "chief":
        return  # A script that knows no chief, but a master.
    server = tf.train.Server(cluster, job_name=options.job_name, task_index=options.task_index)
    if options.job_name == "ps":
        if options.mistake != "no join":
            server.join()
    elif options.mistake == "a master":
        server.join()  # It is for the master to train, with the devices of the workers.
    else:
        train(cluster, server.target)


main()
