"""The shortest loop: ``Session``, ``feed_dict``, no global step, and now and then an evaluation."""
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
parser.add_argument("--width", type=int, default=10)
options = parser.parse_args()
BATCH = 40
target, device = "", None
if options.ps_hosts:
    cluster = tf.train.ClusterSpec({"ps": options.ps_hosts.split(","), "worker": options.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=options.job_name, task_index=options.task_index)
    if options.job_name == "ps":
        server.join()
    target = server.target
    device = tf.train.replica_device_setter(
        worker_device="/job:worker/task:%d" % options.task_index, cluster=cluster
    )
with tf.device(device):
    x = tf.placeholder(tf.float32, [None, options.width])
    y = tf.placeholder(tf.int64, [None])
    w = tf.Variable(tf.zeros([options.width, 3]))
    b = tf.Variable(tf.zeros([3]))
    logits = tf.matmul(x, w) + b
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    missing = tf.report_uninitialized_variables()
random = np.random.RandomState(2)
held = random.normal(size=(500, options.width))
with tf.Session(target) as session:
    if options.task_index == 0:
        session.run(tf.global_variables_initializer())
    while len(session.run(missing)):
        time.sleep(0.2)
    for number in range(1, options.steps + 1):
        rows = random.normal(size=(BATCH, options.width))
        _, value = session.run([train, loss], feed_dict={x: rows, y: rows[:, :3].argmax(1)})
        print("step %d loss %.9g" % (number, value), flush=True)
        if number % 50 == 0:
            print("accuracy %.4f" % session.run(accuracy, {x: held, y: held[:, :3].argmax(1)}), flush=True)
        if number % 10 == 0:
            print("made %d at %.6f" % (number, time.time()), flush=True)
