"""``tf.data`` under a ``MonitoredTrainingSession``; who it is, chief or master too, comes from ``TF_CONFIG``."""
import argparse
import json
import os
import time

import numpy as np

try:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
except ImportError:  # before 1.13
    import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--width", type=int, default=6)
options = parser.parse_args()
BATCH = 30


def main():
    config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    task = config.get("task", {"type": "master", "index": 0})
    target, device = "", None
    if config.get("cluster"):
        cluster = tf.train.ClusterSpec(config["cluster"])
        server = tf.train.Server(cluster, job_name=task["type"], task_index=task["index"])
        if task["type"] == "ps":
            server.join()
        target = server.target
        device = tf.train.replica_device_setter(
            worker_device="/job:%s/task:%d" % (task["type"], task["index"]), cluster=cluster
        )
    chiefs = {"chief", "master"} & set(config.get("cluster", {"master": []})) or {"worker"}
    rows = np.arange(3000)
    with tf.device(device):
        examples = tf.data.Dataset.from_tensor_slices((rows % 211, (rows % 211 % 7 == 0).astype(np.float32)))
        batches = examples.repeat().batch(BATCH)
        if hasattr(tf.data, "make_one_shot_iterator"):
            ids, labels = tf.data.make_one_shot_iterator(batches).get_next()
        else:  # before 1.13
            ids, labels = batches.make_one_shot_iterator().get_next()
        table = tf.get_variable("table", [211, options.width], initializer=tf.constant_initializer(0.01))
        bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
        logits = tf.reduce_sum(tf.nn.embedding_lookup(table, ids), 1) + bias
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        step = tf.train.get_or_create_global_step()
        train = tf.train.FtrlOptimizer(0.1).minimize(loss, global_step=step)
    hooks = [tf.train.StopAtStepHook(last_step=options.steps)]
    with tf.train.MonitoredTrainingSession(
        master=target, is_chief=task["type"] in chiefs and task["index"] == 0, hooks=hooks
    ) as session:
        made = 0
        while not session.should_stop():
            _, value, number = session.run([train, loss, step])
            made += 1
            print("step %d loss %.9g" % (number, value), flush=True)
            if made % 10 == 0:
                print("made %d at %.6f" % (made, time.time()), flush=True)


main()
