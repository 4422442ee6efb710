"""A parameter server and a worker that trains on it, each as its options say.

The server leaves in another way with each ``--server``: it joins, or it does what keeps it in its script.
"""

import argparse
import json
import os
import threading
import time

import tensorflow as tf

if hasattr(tf, "compat") and hasattr(tf.compat, "v1"):
    tf = tf.compat.v1
    tf.disable_eager_execution()

parser = argparse.ArgumentParser()
parser.add_argument("--ports", required=True)
parser.add_argument("--job", required=True)
parser.add_argument("--server", default="join")
options = parser.parse_args()

addresses = ["127.0.0.1:" + port for port in options.ports.split(",")]
cluster = tf.train.ClusterSpec({"ps": addresses[:1], "worker": addresses[1:]})

if options.job == "ps":
    by_hand = options.server == "started"
    server = tf.train.Server(cluster, job_name="ps", task_index=0, start=not by_hand)
    if by_hand:
        server.start()
    if options.server == "target":
        print(server.target, flush=True)
    if options.server == "thread":
        threading.Thread(target=time.sleep, args=(1000,), name="metrics", daemon=True).start()
    if options.server == "two":
        tf.train.Server({"worker": ["127.0.0.1:0"]}, job_name="worker", task_index=0)
    if options.server == "late":
        time.sleep(1000)
    server.join()

server = tf.train.Server(cluster, job_name="worker", task_index=0)
with tf.device("/job:ps/task:0"):
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
train = tf.train.GradientDescentOptimizer(0.25).minimize((weight - 3) ** 2)
with tf.Session(server.target) as session:
    session.run(tf.global_variables_initializer())
    values = [float(session.run([train, weight])[1]) for _ in range(5)]
    print(json.dumps({"place": weight.device, "last": float(session.run(weight)), "steps": len(values)}), flush=True)
os._exit(0)
