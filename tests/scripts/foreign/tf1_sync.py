"""``SyncReplicasOptimizer`` between graph replicas: a step takes the gradients of all workers."""
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
parser.add_argument("--width", type=int, default=64)
options = parser.parse_args()
BATCH = 32


def main():
    workers = options.worker_hosts.split(",")
    target, device = "", None
    if options.ps_hosts:
        cluster = tf.train.ClusterSpec({"ps": options.ps_hosts.split(","), "worker": workers})
        server = tf.train.Server(cluster, job_name=options.job_name, task_index=options.task_index)
        if options.job_name == "ps":
            server.join()
        target = server.target
        device = tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % options.task_index, cluster=cluster
        )
    is_chief = options.task_index == 0
    with tf.device(device):
        x = tf.placeholder(tf.float32, [None, 20])
        y = tf.placeholder(tf.float32, [None, 1])
        hidden = tf.nn.relu(tf.matmul(x, tf.get_variable("hidden", [20, options.width])))
        loss = tf.reduce_mean(tf.square(tf.matmul(hidden, tf.get_variable("out", [options.width, 1])) - y))
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(0.01),
            replicas_to_aggregate=len(workers),
            total_num_replicas=len(workers),
        )
        train = optimizer.minimize(loss, global_step=step)
    hooks = [optimizer.make_session_run_hook(is_chief), tf.train.StopAtStepHook(last_step=options.steps)]
    random, made = np.random.RandomState(options.task_index), 0
    with tf.train.MonitoredTrainingSession(
        master=target,
        is_chief=is_chief,
        hooks=hooks,
        stop_grace_period_secs=5,  # Threads of synchronous replicas never end by themselves.
    ) as session:
        while not session.should_stop():
            features = random.normal(size=(BATCH, 20)).astype(np.float32)
            _, value, number = session.run([train, loss, step], {x: features, y: features[:, :1] * 2})
            made += 1
            print("step %d loss %.9g" % (number, value), flush=True)
            if made % 10 == 0:
                print("made %d at %.6f" % (made, time.time()), flush=True)


main()
