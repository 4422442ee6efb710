"""Factors of a matrix of users and items: ``tf.data`` from files, a partitioned table, a ``Supervisor``."""
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
parser.add_argument("--users", type=int, default=20000)
parser.add_argument("--items", type=int, default=4000)
parser.add_argument("--factors", type=int, default=64)
parser.add_argument("--batch", type=int, default=512)
parser.add_argument("--mixings", type=int, default=12)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--parts", type=int, default=0, help="of each table; 0: one for each parameter server")
parser.add_argument("--optimizer", choices=["momentum", "adam"], default="momentum")
parser.add_argument("--no-setter", action="store_true")
parser.add_argument("--no-join", action="store_true")
parser.add_argument("--ports", default="")
parser.add_argument("--master", action="store_true")
parser.add_argument("--no-filters", action="store_true")
parser.add_argument("--recovery-wait", type=int, default=1)
parser.add_argument("--chief-late", type=float, default=0.0)
parser.add_argument("--log-placement", action="store_true")
parser.add_argument("--heap", action="store_true")
parser.add_argument("--regularised", action="store_true")
parser.add_argument("--one-hot", action="store_true")
parser.add_argument("--no-prefetch", action="store_true")
parser.add_argument("--decodings", type=int, default=0)
parser.add_argument("--log-of", type=float, default=0.0)
slips.add_options(parser)
options = parser.parse_args()
NAME = "%s-%d" % (options.job_name, options.task_index)
slips.begin(options, NAME)

try:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
except ImportError:  # before 1.13
    import tensorflow as tf

COLUMNS = 9
CHIEF = options.task_index == 0


def decoded(records):
    """Return users, items and ratings of a batch of records."""
    values = tf.reshape(tf.decode_raw(records, tf.int32), [-1, COLUMNS])
    users = values[:, 0] % options.users
    for _ in range(options.decodings):
        users = tf.to_int32(tf.string_to_number(tf.as_string(users)))
    return users, values[:, 1] % options.items, tf.cast(values[:, COLUMNS - 1], tf.float32)


def examples():
    paths = sorted(glob.glob(os.path.join(options.data, "train-*")))
    dataset = tf.data.FixedLengthRecordDataset(paths, COLUMNS * 4).repeat().batch(options.batch).map(decoded)
    if not options.no_prefetch:
        dataset = dataset.prefetch(2)
    if hasattr(tf.data, "make_one_shot_iterator"):
        return tf.data.make_one_shot_iterator(dataset).get_next()
    return dataset.make_one_shot_iterator().get_next()  # before 1.13


def table(name, rows, servers):
    parts = options.parts or servers
    make = lambda: tf.get_variable(
        name, [rows, options.factors], initializer=tf.random_uniform_initializer(-0.1, 0.1),
        partitioner=tf.fixed_size_partitioner(parts) if parts > 1 else None,
    )  # fmt: skip
    if options.heap:
        with tf.device("/job:ps/task:0"):
            return make()
    return make()


def rows_of(known, rows, ids):
    if options.one_hot:
        return tf.matmul(tf.one_hot(ids, rows), tf.convert_to_tensor(known))
    return tf.nn.embedding_lookup(known, ids, partition_strategy="div")


def model(servers, users, items, ratings):
    of_users, of_items = table("users", options.users, servers), table("items", options.items, servers)
    left, right = rows_of(of_users, options.users, users), rows_of(of_items, options.items, items)
    mean = tf.get_variable("mean", [], initializer=tf.zeros_initializer())
    mixing = tf.get_variable("mixing", [options.factors, options.factors])
    for _ in range(options.mixings):  # More than a product: work for the worker alone.
        left = tf.nn.softsign(left + 0.1 * tf.matmul(right, mixing))
        right = tf.nn.softsign(right + 0.1 * tf.matmul(left, mixing))
    loss = tf.reduce_mean(tf.square(tf.reduce_sum(left * right, 1) + mean - ratings))
    if options.regularised:
        loss += 1e-6 * tf.nn.l2_loss(tf.convert_to_tensor(of_users))
    if options.log_of:
        first = tf.constant_initializer(options.log_of)
        bound = tf.get_variable("bound", [], initializer=first, trainable=False)
        loss += 0.001 * tf.log(tf.stop_gradient(tf.assign_sub(bound, 1.0)))
    return loss


def train(cluster, target, config):
    if CHIEF:
        time.sleep(options.chief_late)
    setter = tf.train.replica_device_setter(
        worker_device="/job:worker/task:%d" % options.task_index, cluster=cluster
    )
    with tf.device(None if options.no_setter else setter):
        loss = model(cluster.num_tasks("ps"), *examples())
        step = tf.train.get_or_create_global_step()
        made = tf.train.AdamOptimizer(0.001)
        if options.optimizer == "momentum":
            made = tf.train.MomentumOptimizer(0.05, 0.9)
        train_op = made.minimize(loss, global_step=step)
        init = tf.global_variables_initializer()
    supervisor = tf.train.Supervisor(
        is_chief=CHIEF, logdir=None, init_op=init, summary_op=None, saver=None, global_step=step,
        recovery_wait_secs=options.recovery_wait,
    )  # fmt: skip
    session = supervisor.prepare_or_wait_for_session(target, config=config, start_standard_services=False)
    steps = slips.Steps(options, NAME)
    while True:
        _, value, number = session.run([train_op, loss, step])
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
