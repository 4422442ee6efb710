"""A training script as TensorFlow 2's tutorial has it: ParameterServerStrategy and Keras, nothing of
paceline.

It reads TF_CONFIG: ps and worker run a server, the chief coordinates. Keras 3 does not work with the
strategy, so it asks for the legacy Keras.
"""

import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np
import tensorflow as tf
import tf_keras

STEPS_PER_EPOCH, EPOCHS, BATCH = 20, 2, 32


def dataset(context):
    def example(seed):
        x = tf.random.stateless_normal([10], tf.stack([seed, tf.constant(1, tf.int64)]))
        return x, tf.reduce_sum(x * tf.range(10, dtype=tf.float32) / 10, keepdims=True) + 1

    batch = context.get_per_replica_batch_size(BATCH)
    return tf.data.Dataset.counter().map(example).batch(batch).prefetch(2)


def coordinate(resolver):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    with strategy.scope():
        model = tf_keras.Sequential(
            [tf_keras.layers.Dense(8, activation="relu", input_shape=(10,)), tf_keras.layers.Dense(1)]
        )
        model.compile(tf_keras.optimizers.legacy.Adagrad(0.1), loss="mse", steps_per_execution=10)
    history = model.fit(
        tf_keras.utils.experimental.DatasetCreator(dataset),
        steps_per_epoch=STEPS_PER_EPOCH,
        epochs=EPOCHS,
        verbose=2,
    )
    print(f"chief done, loss {float(np.asarray(history.history['loss'][-1])):.6f}", flush=True)  # noqa: T201


def main():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("ps", "worker"):
        server = tf.distribute.Server(
            resolver.cluster_spec(), resolver.task_type, resolver.task_id, protocol="grpc"
        )
        server.join()
    else:
        coordinate(resolver)


if __name__ == "__main__":
    main()
