"""Wide and deep on ids that are read from files and fed: flags, two optimizers, ``MonitoredTrainingSession``."""
import argparse
import glob
import os
import time

import slips

parser = argparse.ArgumentParser()
parser.add_argument("--ps_hosts", required=True)
parser.add_argument("--worker_hosts", required=True)
parser.add_argument("--job_name", required=True)
parser.add_argument("--task_index", type=int, required=True)
parser.add_argument("--data", required=True)
parser.add_argument("--folder", required=True)
parser.add_argument("--rows", type=int, default=4000)
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--tables", type=int, default=8)
parser.add_argument("--batch", type=int, default=256)
parser.add_argument("--hidden", type=int, default=128)
parser.add_argument("--mixings", type=int, default=16)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--optimizer", choices=["adagrad", "adam"], default="adagrad")
parser.add_argument("--evaluate-every", type=int, default=0)
parser.add_argument("--sync", action="store_true")
parser.add_argument("--checkpoint-seconds", type=float, default=0.0)
parser.add_argument("--summary-steps", type=int, default=0)
parser.add_argument("--no-setter", action="store_true")
parser.add_argument("--no-join", action="store_true")
parser.add_argument("--ports", default="")
parser.add_argument("--master", action="store_true")
parser.add_argument("--no-filters", action="store_true")
parser.add_argument("--impatient", action="store_true")
parser.add_argument("--chief-late", type=float, default=0.0)
parser.add_argument("--log-placement", action="store_true")
parser.add_argument("--heap", action="store_true")
parser.add_argument("--scaled", action="store_true")
parser.add_argument("--one-hot", action="store_true")
parser.add_argument("--feed-floats", type=int, default=0)
parser.add_argument("--parse-in-python", type=int, default=0)
parser.add_argument("--log-of", type=float, default=0.0)
slips.add_options(parser)
options = parser.parse_args()
NAME = "%s-%d" % (options.job_name, options.task_index)
slips.begin(options, NAME)

import numpy as np

try:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
except ImportError:  # before 1.13
    import tensorflow as tf

COLUMNS = 8
CHIEF = options.task_index == 0


class Balanced(object):
    """Gives each variable to the parameter server that has the fewest values."""

    def __init__(self, servers):
        self.values = [0] * servers

    def __call__(self, op):
        server = self.values.index(min(self.values))
        self.values[server] += op.outputs[0].get_shape().num_elements() or 1
        return server


def batches():
    """Read the worker's part of the examples over and over."""
    paths = sorted(glob.glob(os.path.join(options.data, "train-*")))
    while True:
        for path in paths[options.task_index % len(paths) :] + paths[: options.task_index % len(paths)]:
            with open(path, "rb", buffering=0) as file:
                while True:
                    rows = np.frombuffer(file.read(options.batch * (COLUMNS + 1) * 4), np.int32)
                    if len(rows) < options.batch * (COLUMNS + 1):
                        break
                    rows = rows.reshape(options.batch, COLUMNS + 1)
                    if options.parse_in_python:
                        rows = np.array([parsed(row) for row in rows.tolist()], np.int32)
                    yield rows[:, :COLUMNS] % options.rows, rows[:, COLUMNS].astype(np.float32)


def parsed(row):
    """Go through an example value by value, as through text."""
    for _ in range(options.parse_in_python):
        row = [int(each) for each in ",".join(map(str, row)).split(",")]
    return row


def rows_of(table, ids):
    if options.one_hot:
        return tf.matmul(tf.one_hot(ids, options.rows), table)
    return tf.nn.embedding_lookup(table * 1.001 if options.scaled else table, ids)


def table(name, width):
    made = lambda: tf.get_variable(
        name, [options.rows, width], initializer=tf.random_uniform_initializer(-0.05, 0.05)
    )
    if options.heap:
        with tf.device("/job:ps/task:0"):
            return made()
    return made()


def model(ids, labels):
    wide, deep = 0.0, []
    tables = [(table("wide_%d" % i, 1), table("deep_%d" % i, options.width)) for i in range(options.tables)]
    for column in range(COLUMNS):
        weights, vectors = tables[column % options.tables]
        wide += tf.squeeze(rows_of(weights, ids[:, column]), 1)
        deep.append(rows_of(vectors, ids[:, column]))
    shape = [COLUMNS * options.width, options.hidden]
    hidden = tf.nn.relu(tf.matmul(tf.concat(deep, 1), tf.get_variable("hidden", shape)))
    mixing = tf.get_variable("mixing", [options.hidden, options.hidden])
    for _ in range(options.mixings):  # The same layer again and again: work for the worker alone.
        hidden = tf.nn.relu(hidden + 0.1 * tf.matmul(hidden, mixing))
    logits = wide + tf.squeeze(tf.matmul(hidden, tf.get_variable("out", [options.hidden, 1])), 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    if options.log_of:
        first = tf.constant_initializer(options.log_of)
        bound = tf.get_variable("bound", [], initializer=first, trainable=False)
        loss += 0.001 * tf.log(tf.stop_gradient(tf.assign_sub(bound, 1.0)))
    return loss


def minimized(loss, step, hooks):
    variables = tf.trainable_variables()
    wide = [each for each in variables if each.op.name.startswith("wide")]
    deep = [each for each in variables if not each.op.name.startswith("wide")]
    made = tf.train.AdamOptimizer(0.001) if options.optimizer == "adam" else tf.train.AdagradOptimizer(0.05)
    if options.sync:
        workers = len(options.worker_hosts.split(","))
        made = tf.train.SyncReplicasOptimizer(made, replicas_to_aggregate=workers, total_num_replicas=workers)
        hooks.append(made.make_session_run_hook(CHIEF))
        return made.minimize(loss, global_step=step)
    first = tf.train.FtrlOptimizer(0.1).minimize(loss, var_list=wide)
    return tf.group(first, made.minimize(loss, global_step=step, var_list=deep))


def wait_for_chief(target, config):
    """Look every half second whether the chief has made the variables."""
    missing = tf.report_uninitialized_variables()
    with tf.Session(target, config=config) as session:
        while len(session.run(missing)):
            time.sleep(0.5)


def train(cluster, target, config):
    if CHIEF:
        time.sleep(options.chief_late)
    setter = tf.train.replica_device_setter(
        worker_device="/job:worker/task:%d" % options.task_index, cluster=cluster,
        ps_strategy=Balanced(cluster.num_tasks("ps")),
    )  # fmt: skip
    hooks = []
    with tf.device(None if options.no_setter else setter):
        ids = tf.placeholder(tf.int32, [None, COLUMNS])
        labels = tf.placeholder(tf.float32, [None])
        loss = model(ids, labels)
        extra = tf.placeholder(tf.float32, [None])
        if options.feed_floats:
            loss += 1e-9 * tf.reduce_mean(extra)
        step = tf.train.get_or_create_global_step()
        train_op = minimized(loss, step, hooks)
        if options.summary_steps:
            for each in tf.trainable_variables():
                tf.summary.histogram(each.op.name, each)
    if CHIEF and options.checkpoint_seconds:
        hooks.append(tf.train.CheckpointSaverHook(options.folder, save_secs=options.checkpoint_seconds))
    if CHIEF and options.summary_steps:
        summary = tf.summary.merge_all()
        hooks.append(
            tf.train.SummarySaverHook(options.summary_steps, output_dir=options.folder, summary_op=summary)
        )
    if not CHIEF and not options.impatient:
        wait_for_chief(target, config)
    steps = slips.Steps(options, NAME)
    more = np.zeros(options.feed_floats, np.float32)
    with tf.train.MonitoredTrainingSession(target, is_chief=CHIEF, hooks=hooks, config=config) as session:
        for one_ids, one_labels in batches():
            fed = {ids: one_ids, labels: one_labels}
            if options.feed_floats:
                fed[extra] = more
            _, value, number = session.run([train_op, loss, step], fed)
            if options.evaluate_every and steps.made % options.evaluate_every == 0:
                print("evaluated: %.6g" % session.run(loss, fed))
            steps.add(number, value)


def main():
    hosts = {"ps": options.ps_hosts.split(","), "worker": options.worker_hosts.split(",")}
    if options.ports:
        first = int(options.ports)
        hosts = {
            "ps": ["localhost:%d" % (first + i) for i in range(len(hosts["ps"]))],
            "worker": ["localhost:%d" % (first + 100 + i) for i in range(len(hosts["worker"]))],
        }
    if options.job_name == "chief":
        return  # It knows workers and a master.
    cluster = tf.train.ClusterSpec(hosts)
    config = tf.ConfigProto(
        intra_op_parallelism_threads=options.threads, inter_op_parallelism_threads=options.threads,
        log_device_placement=options.log_placement,
    )  # fmt: skip
    server = tf.train.Server(
        cluster, job_name=options.job_name, task_index=options.task_index, config=config
    )
    if options.job_name == "ps":
        if not options.no_join:
            server.join()
        return
    if options.master:
        server.join()
    if not options.no_filters:
        config.device_filters.extend(["/job:ps", "/job:worker/task:%d" % options.task_index])
    train(cluster, server.target, config)


main()
