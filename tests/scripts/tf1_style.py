"""A training script as people wrote them for TensorFlow 1: host lists and task as arguments, nothing of
paceline.

python tf1_style.py --ps_hosts=HOST:PORT,... --worker_hosts=HOST:PORT,... --job_name=ps|worker --task_index=N
"""

import argparse

import numpy as np
import tensorflow.compat.v1 as tf

parser = argparse.ArgumentParser()
parser.add_argument("--ps_hosts", required=True)
parser.add_argument("--worker_hosts", required=True)
parser.add_argument("--job_name", choices=("ps", "worker"), required=True)
parser.add_argument("--task_index", type=int, required=True)
parser.add_argument("--steps", type=int, default=2000)
parser.add_argument("--checkpoint_dir", default=None)


def main():
    options = parser.parse_args()
    cluster = tf.train.ClusterSpec(
        {"ps": options.ps_hosts.split(","), "worker": options.worker_hosts.split(",")}
    )
    server = tf.train.Server(cluster, job_name=options.job_name, task_index=options.task_index)
    if options.job_name == "ps":
        server.join()
        return
    tf.disable_eager_execution()
    worker = f"/job:worker/task:{options.task_index}"
    with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
        x = tf.placeholder(tf.float32, [None, 10])
        y = tf.placeholder(tf.float32, [None, 1])
        weights = tf.get_variable("weights", [10, 1], initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) + bias - y))
        step = tf.train.get_or_create_global_step()
        update = tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step)

    random = np.random.default_rng(options.task_index)
    truth = np.arange(10, dtype=np.float32).reshape(10, 1) / 10
    value = float("nan")
    config = tf.ConfigProto(device_filters=["/job:ps", worker])
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=options.task_index == 0,
        checkpoint_dir=options.checkpoint_dir,
        hooks=[tf.train.StopAtStepHook(last_step=options.steps)],
        config=config,
    ) as session:
        while not session.should_stop():
            batch = random.normal(size=(32, 10)).astype(np.float32)
            value, _ = session.run([loss, update], {x: batch, y: batch @ truth + 1})
    print(f"worker {options.task_index} done, loss {value:.6f}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
