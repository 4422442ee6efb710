"""The clicks model with TensorFlow 2's ``ParameterServerStrategy`` and Keras, as its tutorial has it.

``python -m benchmarks.strategy FOLDER clicks --data DATA``: an embedding layer for each feature, Adam,
``Model.fit`` with several steps to an execution. Nothing of Paceline but the reading of the examples, which
lie in memory before training starts. The chief counts as `benchmarks.stepped` does.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np
import tensorflow as tf
import tf_keras

from benchmarks import stepped
from paceline import training
from paceline.examples.clicks import generate, train
from paceline.training import features
from paceline.training.input import inputs

BATCH, DIMENSION, UNITS = 512, 16, (256, 128, 64)
STEPS_PER_EPOCH = 50


def model(known: features.FeatureSet, deep: int) -> Any:
    """Wide & Deep with an embedding layer for each feature and part."""
    numeric = tf_keras.Input((len(known.numeric),))
    ids = tf_keras.Input((len(known.categorical),), dtype=tf.int32)
    columns = [ids[:, i] for i in range(len(known.categorical))]
    vectors = [
        tf_keras.layers.Embedding(feature.rows, DIMENSION)(column)
        for feature, column in zip(known.categorical[:deep], columns, strict=False)
    ]
    hidden = tf_keras.layers.Concatenate()([numeric, *vectors])
    for units in UNITS:
        hidden = tf_keras.layers.Dense(units, activation="relu")(hidden)
    weights = [
        tf_keras.layers.Embedding(feature.rows, 1)(column)
        for feature, column in zip(known.categorical, columns, strict=True)
    ]
    logit = tf_keras.layers.Add()([tf_keras.layers.Dense(1)(hidden), *weights])
    return tf_keras.Model([numeric, ids], tf_keras.layers.Activation("sigmoid")(logit))


def arrays(source: training.Source, known: features.FeatureSet) -> features.Examples:
    """All examples of a source."""
    chunks = list(inputs.once(source, known))
    return features.Examples(*(np.concatenate(each) for each in zip(*chunks, strict=True)))


class Counting(tf_keras.callbacks.Callback):  # type: ignore[misc]
    """Counts the examples of each epoch."""

    def __init__(self, counter: stepped.Counter) -> None:
        super().__init__()
        self._counter = counter

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        """Counts them."""
        self._counter.add(STEPS_PER_EPOCH * BATCH)


def coordinate(resolver: Any, counts: Path, data: generate.DataSet, epochs: int) -> None:
    """Trains, and says what AUC that gave."""
    wide_and_deep = train.model(data.parameters.tables)
    known = wide_and_deep.features
    servers = resolver.cluster_spec().num_tasks("ps")
    partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(256 << 10, max_shards=servers)
    strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
    with strategy.scope():
        made = model(known, len(wide_and_deep.deep or known.categorical))
        made.compile(tf_keras.optimizers.legacy.Adam(), loss="binary_crossentropy", steps_per_execution=10)

    def dataset(context: Any) -> Any:
        examples = arrays(training.Source((data.train_pattern,)), known)
        whole = tf.data.Dataset.from_tensor_slices(((examples.numeric, examples.ids), examples.labels))
        return whole.shuffle(100_000).repeat().batch(BATCH).prefetch(2)

    made.fit(
        tf_keras.utils.experimental.DatasetCreator(dataset),
        steps_per_epoch=STEPS_PER_EPOCH,
        epochs=epochs,
        verbose=0,
        callbacks=[Counting(stepped.Counter(counts / "0"))],
    )


def main() -> None:
    """Be whichever replica this process is."""
    parser = argparse.ArgumentParser()
    parser.add_argument("counts", type=Path)
    parser.add_argument("example", choices=("clicks",))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--epochs", type=int, default=1_000_000)
    options = parser.parse_args()
    options.counts.mkdir(exist_ok=True)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("ps", "worker"):
        tf.distribute.Server(
            resolver.cluster_spec(), resolver.task_type, resolver.task_id, protocol="grpc"
        ).join()
    else:
        coordinate(resolver, options.counts, generate.load(options.data), options.epochs)


if __name__ == "__main__":
    main()
