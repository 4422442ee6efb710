"""A click model in the loops that scripts of sessions have (``TF_CONFIG``); flags say what makes it slow.

Ids are drawn so that small ones come often, and each has an effect on clicks that is the same in every run, so
there is something to learn. ``--restore`` trains nothing: it says the loss of what is in the folder.
"""
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
loops = ("monitored", "supervisor", "feed", "sync", "dataset", "model-fn")
parser.add_argument("--loop", default="monitored", choices=loops)
parser.add_argument("--steps", type=int, default=1000, help="of all workers together")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--folder", required=True, help="for the checkpoint")
parser.add_argument("--restore", action="store_true")
parser.add_argument("--optimizer", default="adagrad", choices=("adam", "adagrad"))
parser.add_argument("--rows", type=int, nargs="+", default=[20000, 2000, 2000, 2000], help="of each table")
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--batch", type=int, default=256)
parser.add_argument("--setter", default="turns", choices=("turns", "own", "none"))
parser.add_argument("--open", action="store_true", help="no device filters: a session sees all workers")
parser.add_argument("--wait", type=int, help="recovery_wait_secs of a Supervisor")
parser.add_argument("--late", type=float, default=0.0, help="seconds by which the chief is late")
parser.add_argument("--away", action="store_true", help="the second worker does not come")
options = parser.parse_args()
EVERY, HELD, LINES = 20, 999983, 100000


def batches(seed):
    random, rows = np.random.RandomState(seed), np.array(options.rows, np.float64)
    while True:
        ids = (rows ** random.rand(options.batch, len(rows)) - 1).astype(np.int64)
        effect = (ids * 48271 + 11 * np.arange(len(rows))) % 997 / 997.0 - 0.5
        clicked = random.rand(options.batch) < 1 / (1 + np.exp(1 - 3 * effect.sum(1)))
        yield ids, clicked.astype(np.float32)


def decoded(line):
    fields = tf.decode_csv(line, [[0]] * len(options.rows) + [[0.0]])
    return tf.cast(tf.stack(fields[:-1]), tf.int64), fields[-1]


def pipeline(seed):
    lines, drawn = [], batches(seed)
    while len(lines) < LINES:
        for ids, clicked in zip(*next(drawn)):
            lines.append("%s,%d" % (",".join(str(each) for each in ids), clicked))
    dataset = tf.data.Dataset.from_tensor_slices(np.array(lines)).repeat().map(decoded).batch(options.batch)
    if hasattr(tf.data, "make_one_shot_iterator"):
        return tf.data.make_one_shot_iterator(dataset).get_next()
    return dataset.make_one_shot_iterator().get_next()  # before 1.13


def placeholders():
    return tf.placeholder(tf.int64, [None, len(options.rows)]), tf.placeholder(tf.float32, [None])


def model(ids, labels):
    vectors = []
    for number, rows in enumerate(options.rows):
        start = tf.random_uniform_initializer(-0.05, 0.05, seed=number + 1)
        table = tf.get_variable("table_%d" % number, [rows, options.width], initializer=start)
        vectors.append(tf.nn.embedding_lookup(table, ids[:, number]))
    start = tf.random_uniform_initializer(-0.1, 0.1, seed=100)
    hidden = tf.get_variable("hidden", [len(vectors) * options.width, 32], initializer=start)
    out = tf.get_variable("out", [32, 1], initializer=start)
    logits = tf.squeeze(tf.matmul(tf.nn.relu(tf.matmul(tf.concat(vectors, 1), hidden)), out), 1)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))


def optimizer():
    return tf.train.AdamOptimizer(0.001) if options.optimizer == "adam" else tf.train.AdagradOptimizer(0.05)


class Progress(object):
    def __init__(self):
        self.made, self.losses = 0, []

    def add(self, step, loss):
        if not self.made:
            print("first step at %.6f" % time.time(), flush=True)
        self.made += 1
        self.losses.append(loss)
        if self.made % EVERY == 0:
            print("step %d loss %.9g" % (step, np.mean(self.losses)))
            print("made %d at %.6f" % (self.made, time.time()), flush=True)
            self.losses = []


class Printing(tf.train.SessionRunHook):
    def __init__(self, loss):
        self.loss, self.progress = loss, Progress()

    def before_run(self, context):
        return tf.train.SessionRunArgs([self.loss, tf.train.get_global_step()])

    def after_run(self, context, values):
        self.progress.add(values.results[1], values.results[0])


def model_fn(features, labels, mode):
    loss = model(features["ids"], labels)
    train = optimizer().minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train, training_hooks=[Printing(loss)])


def estimate(seed):
    def examples():
        ids, labels = pipeline(seed)
        return {"ids": ids}, labels

    config = tf.estimator.RunConfig(
        model_dir=options.folder, tf_random_seed=options.seed, save_checkpoints_secs=1000000,
        save_summary_steps=None,
    )  # fmt: skip
    training = tf.estimator.TrainSpec(examples, max_steps=options.steps)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    tf.estimator.train_and_evaluate(estimator, training, tf.estimator.EvalSpec(examples, steps=20))


def setter(cluster, worker):
    if options.setter == "none":
        return None
    strategy = None if options.setter == "turns" else (lambda operation: 0)
    return tf.train.replica_device_setter(worker_device=worker, cluster=cluster, ps_strategy=strategy)


def loop(session, run, drawn, is_done):
    progress, number = Progress(), 0
    while not is_done(number):
        _, loss, number = session.run(*run(drawn))
        progress.add(number, loss)


def train(cluster, target, index, seed):
    worker, is_chief = "/job:worker/task:%d" % index, index == 0
    config = tf.ConfigProto(device_filters=[] if options.open else ["/job:ps", worker])
    with tf.device(setter(cluster, worker)):
        ids, labels = pipeline(seed) if options.loop == "dataset" else placeholders()
        loss = model(ids, labels)
        step, chosen = tf.train.get_or_create_global_step(), optimizer()
        if options.loop == "sync":
            count = cluster.num_tasks("worker")
            chosen = tf.train.SyncReplicasOptimizer(chosen, replicas_to_aggregate=count, total_num_replicas=count)
        update = chosen.minimize(loss, global_step=step)
        missing, saver = tf.report_uninitialized_variables(), tf.train.Saver()
        start = tf.global_variables_initializer()
    fetches = [update, loss, step]

    def run(drawn):
        return (fetches,) if options.loop == "dataset" else (fetches, dict(zip((ids, labels), next(drawn))))

    def is_done(number):
        return number >= options.steps

    drawn, path = batches(seed), os.path.join(options.folder, "model")
    if options.loop == "supervisor":
        more = {} if options.wait is None else {"recovery_wait_secs": options.wait}
        supervisor = tf.train.Supervisor(
            is_chief=is_chief, logdir=None, summary_op=None, global_step=step, saver=saver, **more
        )
        with supervisor.managed_session(target, config=config) as session:
            loop(session, run, drawn, is_done)
            if is_chief:
                saver.save(session, path)
    elif options.loop == "feed":
        with tf.Session(target, config=config) as session:
            if is_chief:
                session.run(start)
            while len(session.run(missing)):
                time.sleep(0.2)
            loop(session, run, drawn, is_done)
            if is_chief:
                saver.save(session, path)
    else:
        # Without a worker that has stopped, no synchronous step is made: the chief stops for all.
        last = options.steps if is_chief or options.loop != "sync" else 1000000000
        hooks = [tf.train.StopAtStepHook(last_step=last)]
        if options.loop == "sync":
            hooks.append(chosen.make_session_run_hook(is_chief))
        with tf.train.MonitoredTrainingSession(
            master=target, is_chief=is_chief, hooks=hooks, config=config, checkpoint_dir=options.folder,
            save_checkpoint_secs=1000000, save_summaries_steps=None, save_summaries_secs=None,
            stop_grace_period_secs=5,  # Threads of synchronous replicas never end by themselves.
        ) as session:  # fmt: skip
            loop(session, run, drawn, lambda number: session.should_stop())


def restore():
    ids, labels = placeholders()
    loss = model(ids, labels)
    optimizer().minimize(loss, global_step=tf.train.get_or_create_global_step())
    held = batches(HELD)
    with tf.Session() as session:
        tf.train.Saver().restore(session, tf.train.latest_checkpoint(options.folder))
        losses = [session.run(loss, dict(zip((ids, labels), next(held)))) for _ in range(100)]
    print("restored loss %.9g" % np.mean(losses), flush=True)


def main():
    if options.restore:
        return restore()
    config = json.loads(os.environ["TF_CONFIG"])
    kind, index = config["task"]["type"], config["task"]["index"]
    seed = 1000 * options.seed + index + (500 if kind == "chief" else 0)
    tf.set_random_seed(options.seed)
    if options.away and kind == "worker" and index == 1:
        time.sleep(1000000)
    if options.late and kind == "worker" and index == 0:
        time.sleep(options.late)
    if options.loop == "model-fn":
        return estimate(seed)
    cluster = tf.train.ClusterSpec(config["cluster"])
    server = tf.train.Server(cluster, job_name=kind, task_index=index)
    if kind == "ps":
        server.join()
    train(cluster, server.target, index, seed)


if __name__ == "__main__":
    main()
