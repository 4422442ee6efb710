"""Flags, ``replica_device_setter`` and ``MonitoredTrainingSession`` with fed batches, between graph replicas."""
import time

import numpy as np

try:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
except ImportError:  # before 1.13
    import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "")
flags.DEFINE_string("worker_hosts", "", "")
flags.DEFINE_string("job_name", "worker", "")
flags.DEFINE_integer("task_index", 0, "")
flags.DEFINE_integer("steps", 400, "")
flags.DEFINE_string("optimizer", "adam", "")
flags.DEFINE_float("pause", 0.0, "seconds before each step")
flags.DEFINE_integer("width", 8, "")
FLAGS = flags.FLAGS
ROWS, BATCH = (5000, 300, 40), 64


def batches(seed):
    random = np.random.RandomState(seed)
    while True:
        ids = np.stack([random.randint(0, rows, BATCH) for rows in ROWS], 1)
        clicked = (ids.sum(1) * 7919 % 13 < 5) ^ (random.rand(BATCH) < 0.1)
        yield ids.astype(np.int64), clicked.astype(np.float32)


def main(_):
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    target, device = "", None
    if FLAGS.ps_hosts:
        hosts = {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
        cluster = tf.train.ClusterSpec(hosts)
        server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index, config=config)
        if FLAGS.job_name == "ps":
            server.join()
        target = server.target
        device = tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster
        )
    tf.set_random_seed(7)
    with tf.device(device):
        ids = tf.placeholder(tf.int64, [None, len(ROWS)])
        labels = tf.placeholder(tf.float32, [None])
        vectors = []
        for number, rows in enumerate(ROWS):
            table = tf.get_variable(
                "table_%d" % number, [rows, FLAGS.width], initializer=tf.random_uniform_initializer(-0.05, 0.05)
            )
            vectors.append(tf.nn.embedding_lookup(table, ids[:, number]))
        weights = tf.get_variable("weights", [len(ROWS) * FLAGS.width, 1])
        hidden = tf.nn.dropout(tf.concat(vectors, 1), 0.9)
        logits = tf.squeeze(tf.matmul(hidden, weights), 1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        step = tf.train.get_or_create_global_step()
        make = {"adam": tf.train.AdamOptimizer, "adagrad": tf.train.AdagradOptimizer}[FLAGS.optimizer]
        train = make(0.01).minimize(loss, global_step=step)
    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.steps)]
    with tf.train.MonitoredTrainingSession(
        master=target, is_chief=FLAGS.task_index == 0, hooks=hooks, config=config
    ) as session:
        begun, made = time.time(), 0
        for one_ids, one_labels in batches(FLAGS.task_index):
            if session.should_stop():
                break
            time.sleep(FLAGS.pause)
            _, value, number = session.run([train, loss, step], {ids: one_ids, labels: one_labels})
            made += 1
            print("step %d loss %.9g" % (number, value))
            if made % 100 == 0:
                print("rate %.3f steps/s" % (made / (time.time() - begun)))
            if made % 10 == 0:
                print("made %d at %.6f" % (made, time.time()), flush=True)


if __name__ == "__main__":
    tf.app.run()
