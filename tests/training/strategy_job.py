"""A script with a `ParameterServerStrategy`, as TensorFlow's tutorial has it; the coordinator traces it.

It trains until there is a trace of both workers that it asks for.
"""

import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np
import tensorflow as tf
import tf_keras as keras

from paceline import training
from paceline.model import traces

FOLDER = Path(os.environ["PACELINE_RUN_DIR"], traces.FOLDER)
BOTH = {"worker-0.1.parquet", "worker-1.1.parquet"}
BATCH, STEPS = 256, 20
ASK_SECONDS = 15  # again with another name, for a busy machine may fail to answer


class UntilTraced(keras.callbacks.Callback):
    """Asks for a trace when steps are known to run, and stops training when it is there."""

    def on_epoch_end(self, epoch, logs=None):
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / traces.REQUEST).write_text(traces.name_at(time.time() // ASK_SECONDS * ASK_SECONDS))
        traced = [{path.name for path in each.glob("*.parquet")} for each in FOLDER.glob("*/")]
        self.model.stop_training = any(names >= BOTH for names in traced)


def dataset(context):
    random = np.random.default_rng(0)
    numbers = random.normal(size=(4096, 4)).astype(np.float32)
    ids = np.stack([random.integers(0, 20_000, 4096), random.integers(0, 300, 4096)], 1).astype(np.int32)
    labels = random.integers(0, 2, 4096).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(((numbers, ids), labels)).repeat().batch(BATCH)


def coordinate(resolver):
    partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(16 << 10, max_shards=2)
    strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
    with strategy.scope():
        numbers, ids = keras.Input((4,)), keras.Input((2,), dtype=tf.int32)
        site = keras.layers.Embedding(20_000, 16, name="site")(ids[:, 0])
        tags = keras.layers.Embedding(30, 16, name="tags")(ids[:, 1] % 30)
        hidden = keras.layers.Concatenate()([numbers, site, tags])
        hidden = keras.layers.Dense(64, activation="relu", name="hidden")(hidden)
        model = keras.Model([numbers, ids], keras.layers.Dense(1, activation="sigmoid")(hidden))
        model.compile(
            keras.optimizers.legacy.Adagrad(0.05), loss="binary_crossentropy", steps_per_execution=5
        )
    with training.StrategyTracer.from_environment():
        model.fit(
            keras.utils.experimental.DatasetCreator(dataset),
            steps_per_epoch=STEPS,
            epochs=1000,
            verbose=0,
            callbacks=[UntilTraced()],
        )


def main():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type == "chief":
        coordinate(resolver)
        sys.stdout.flush()
        os._exit(0)  # the strategy's threads wait for servers that go away
    tf.distribute.Server(resolver.cluster_spec(), resolver.task_type, resolver.task_id).join()


if __name__ == "__main__":
    main()
