"""`Model.fit` under a `ParameterServerStrategy`, as TensorFlow's tutorial has it; it trains for a long time."""
import os
import sys

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np
import tensorflow as tf
import tf_keras as keras

BATCH, STEPS = 256, 20


def dataset(context):
    random = np.random.RandomState(0)
    numbers = random.normal(size=(4096, 4)).astype(np.float32)
    ids = np.stack([random.randint(0, 20000, 4096), random.randint(0, 300, 4096)], 1).astype(np.int32)
    labels = random.randint(0, 2, 4096).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(((numbers, ids), labels)).repeat().batch(BATCH)


def coordinate(resolver):
    partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(16 << 10, max_shards=2)
    strategy = tf.distribute.experimental.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
    with strategy.scope():
        numbers, ids = keras.Input((4,)), keras.Input((2,), dtype=tf.int32)
        site = keras.layers.Embedding(20000, 16, name="site")(ids[:, 0])
        tags = keras.layers.Embedding(30, 16, name="tags")(ids[:, 1] % 30)
        hidden = keras.layers.Concatenate()([numbers, site, tags])
        hidden = keras.layers.Dense(64, activation="relu", name="hidden")(hidden)
        model = keras.Model([numbers, ids], keras.layers.Dense(1, activation="sigmoid")(hidden))
        optimizer = keras.optimizers.legacy.Adagrad(0.05)
        model.compile(optimizer, loss="binary_crossentropy", steps_per_execution=5)
    model.fit(
        keras.utils.experimental.DatasetCreator(dataset), steps_per_epoch=STEPS, epochs=100000, verbose=0
    )


def main():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type == "chief":
        coordinate(resolver)
        sys.stdout.flush()
        os._exit(0)  # The strategy's threads wait for servers that go away.
    tf.distribute.Server(resolver.cluster_spec(), resolver.task_type, resolver.task_id).join()


if __name__ == "__main__":
    main()
