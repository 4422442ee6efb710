"""A click model in Keras, by ``fit`` or a loop of its own, in one process or under a ``ParameterServerStrategy``.

Who it is comes from ``TF_CONFIG``; flags say what makes it slow. Small ids come often, and each has an effect
on clicks that is the same in every run. ``--restore`` trains nothing: it says the loss of what is in the folder.
"""
import argparse
import json
import os
import sys
import time

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--loop", default="fit", choices=("fit", "loop"))
parser.add_argument("--steps", type=int, default=1000, help="of all workers together")
parser.add_argument("--every", type=int, default=50, help="steps of an epoch")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--folder", required=True, help="for the checkpoint")
parser.add_argument("--restore", action="store_true")
parser.add_argument("--optimizer", default="adagrad", choices=("adam", "amsgrad", "adagrad"))
parser.add_argument("--rows", type=int, nargs="+", default=[20000, 2000, 2000, 2000], help="of each table")
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--batch", type=int, default=256)
parser.add_argument("--lines", action="store_true", help="examples are lines that a map decodes")
parser.add_argument("--state", action="store_true", help="that map draws random numbers")
parser.add_argument("--graph", action="store_true", help="without eager execution")
parser.add_argument("--keras3", action="store_true")
parser.add_argument("--per-execution", type=int, help="what the script chooses")
parser.add_argument("--each", action="store_true", help="has a callback that wants each batch")
options = parser.parse_args()
if options.keras3:
    import keras
else:
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    try:
        import tf_keras as keras
    except ImportError:
        keras = tf.keras
if options.graph:
    tf.compat.v1.disable_v2_behavior()
HELD, COUNT = 999983, 100000


def drawn(seed, count):
    random, rows = np.random.RandomState(seed), np.array(options.rows, np.float64)
    ids = (rows ** random.rand(count, len(rows)) - 1).astype(np.int64)
    effect = (ids * 48271 + 11 * np.arange(len(rows))) % 997 / 997.0 - 0.5
    clicked = random.rand(count) < 1 / (1 + np.exp(1 - 3 * effect.sum(1)))
    return ids, clicked.astype(np.float32)


def decoded(line):
    fields = tf.io.decode_csv(line, [[0]] * len(options.rows) + [[0.0]])
    label = fields[-1]
    if options.state:
        label = label * tf.cast(tf.random.uniform([]) < 2.0, tf.float32)
    return tf.cast(tf.stack(fields[:-1]), tf.int64), label


def examples(context=None):
    ids, clicked = drawn(1000 * options.seed + (context.input_pipeline_id if context else 0), COUNT)
    if options.lines:
        lines = ["%s,%d" % (",".join(map(str, row)), label) for row, label in zip(ids.tolist(), clicked)]
        dataset = tf.data.Dataset.from_tensor_slices(lines).repeat().map(decoded)
    else:
        dataset = tf.data.Dataset.from_tensor_slices((ids, clicked)).repeat()
    return dataset.batch(options.batch, drop_remainder=True)


class Clicks(keras.Model):
    def __init__(self):
        super(Clicks, self).__init__()
        uniform = keras.initializers.RandomUniform
        self.tables = [
            keras.layers.Embedding(
                rows, options.width, name="table_%d" % number,
                embeddings_initializer=uniform(-0.05, 0.05, seed=number + 1),
            )
            for number, rows in enumerate(options.rows)
        ]  # fmt: skip
        self.hidden = keras.layers.Dense(32, "relu", kernel_initializer=uniform(-0.1, 0.1, seed=100))
        self.out = keras.layers.Dense(1, "sigmoid", kernel_initializer=uniform(-0.1, 0.1, seed=101))

    def call(self, ids):
        vectors = [table(ids[:, number]) for number, table in enumerate(self.tables)]
        return self.out(self.hidden(tf.concat(vectors, 1)))


def optimizer():
    # Graphs know only the optimizers of before 2.11.
    known = getattr(keras.optimizers, "legacy", keras.optimizers) if options.graph else keras.optimizers
    if options.optimizer == "adagrad":
        return known.Adagrad(0.05)
    return known.Adam(0.001, amsgrad=options.optimizer == "amsgrad")


def say(step, loss):
    print("step %d loss %.9g" % (step, loss))
    print("made %d at %.6f" % (step, time.time()), flush=True)


class Printing(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        say((epoch + 1) * options.every, float(logs["loss"]))


class Counting(keras.callbacks.Callback):
    batches = 0

    def on_train_batch_end(self, batch, logs=None):
        self.batches += 1


def fit(made, strategy):
    more = {} if options.per_execution is None else {"steps_per_execution": options.per_execution}
    made.compile(optimizer(), "binary_crossentropy", **more)
    data = examples() if strategy is None else keras.utils.experimental.DatasetCreator(examples)
    made.fit(
        data, steps_per_epoch=options.every, epochs=options.steps // options.every, verbose=0,
        callbacks=[Printing(), Counting()] if options.each else [Printing()],
    )  # fmt: skip


def loop(made, strategy):
    made(tf.zeros([2, len(options.rows)], tf.int64))
    chosen = optimizer()

    def replica_step(ids, labels):
        with tf.GradientTape() as tape:
            found = tf.squeeze(made(ids), 1)
            loss = tf.reduce_mean(keras.losses.binary_crossentropy(labels[:, None], found[:, None]))
        variables = made.trainable_variables
        chosen.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    @tf.function
    def step(iterator):
        ids, labels = next(iterator)
        if strategy is None:
            return replica_step(ids, labels)
        return strategy.reduce("sum", strategy.run(replica_step, (ids, labels)), axis=None)

    if strategy is None:
        iterator = iter(examples())
    else:
        coordinator = tf.distribute.experimental.coordinator.ClusterCoordinator(strategy)
        iterator = iter(coordinator.create_per_worker_dataset(examples))
    for epoch in range(options.steps // options.every):
        if strategy is None:
            losses = [float(step(iterator)) for _ in range(options.every)]
        else:
            remote = [coordinator.schedule(step, (iterator,)) for _ in range(options.every)]
            coordinator.join()
            losses = [float(each.fetch()) for each in remote]
        say((epoch + 1) * options.every, np.mean(losses))


def restore():
    made = Clicks()
    ids, clicked = drawn(HELD, 50000)
    made(ids[:2])
    path = os.path.join(options.folder, "model")
    if options.graph or options.keras3:
        made.load_weights(path + (".h5" if options.graph else ".weights.h5"))
    else:
        saved = tf.train.Checkpoint(model=made)
        status = saved.restore(tf.train.latest_checkpoint(options.folder))
        status.assert_existing_objects_matched().expect_partial()
    found = made(tf.constant(ids))
    if options.graph:
        found = keras.backend.get_value(found)
    found = np.clip(np.asarray(found)[:, 0], 1e-7, 1 - 1e-7)
    losses = -np.where(clicked > 0, np.log(found), np.log(1 - found))
    print("restored loss %.9g" % losses.mean(), flush=True)


def save(made):
    path = os.path.join(options.folder, "model")
    if not os.path.isdir(options.folder):
        os.makedirs(options.folder)
    if options.graph or options.keras3:
        made.save_weights(path + (".h5" if options.graph else ".weights.h5"))
    else:
        tf.train.Checkpoint(model=made).save(path)


def main():
    if options.restore:
        return restore()
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    task = config.get("task") if "ps" in config.get("cluster", {}) else None
    if task is None:
        made, strategy = Clicks(), None
    else:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        if task["type"] in ("ps", "worker"):
            tf.distribute.Server(resolver.cluster_spec(), task["type"], task["index"], protocol="grpc").join()
        strategy = tf.distribute.experimental.ParameterServerStrategy(resolver)
        with strategy.scope():
            made = Clicks()
    train = fit if options.loop == "fit" else loop
    if strategy is None:
        train(made, None)
    else:
        with strategy.scope():
            train(made, strategy)
    save(made)
    if strategy is not None:
        sys.stdout.flush()
        os._exit(0)  # Its threads wait for servers that go away.


if __name__ == "__main__":
    main()
