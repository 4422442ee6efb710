"""``Model.fit`` of Keras on a dataset, in one process or under a ``ParameterServerStrategy`` (``TF_CONFIG``)."""
import argparse
import json
import os
import time

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--keras3", action="store_true")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--width", type=int, default=8)
options = parser.parse_args()
if options.keras3:
    import keras
else:
    try:
        import tf_keras as keras
    except ImportError:
        keras = tf.keras
STEPS, BATCH = 60, 32


def examples(context=None):
    random = np.random.RandomState(3)
    ids = random.randint(0, 500, (4096, 1)).astype(np.int64)
    labels = (ids * 7919 % 13 < 5).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((ids, labels)).repeat()
    return dataset.batch(BATCH).prefetch(2)


def model():
    made = keras.Sequential(
        [
            keras.layers.InputLayer((1,)),
            keras.layers.Embedding(500, options.width, name="table"),
            keras.layers.Flatten(),
            keras.layers.Dense(1, "sigmoid"),
        ]
    )
    made.compile(keras.optimizers.Adam(0.01), "binary_crossentropy")
    return made


class Slowly(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(float(os.environ.get("PAUSE", "0")))


class Printing(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print("made %d at %.6f" % ((epoch + 1) * STEPS, time.time()), flush=True)


def main():
    tf.keras.utils.set_random_seed(7) if hasattr(tf.keras.utils, "set_random_seed") else tf.random.set_seed(7)
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    task = config.get("task") if "ps" in config.get("cluster", {}) else None
    if task is None:
        fitted, data = model(), examples()
    else:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        if task["type"] in ("ps", "worker"):
            server = tf.distribute.Server(
                resolver.cluster_spec(), job_name=task["type"], task_index=task["index"], protocol="grpc"
            )
            server.join()
        strategy = tf.distribute.experimental.ParameterServerStrategy(resolver)
        with strategy.scope():
            fitted = model()
        data = keras.utils.experimental.DatasetCreator(examples)
    history = fitted.fit(
        data, steps_per_epoch=STEPS, epochs=options.epochs, verbose=2,
        callbacks=[Printing()] if task else [Printing(), Slowly()],
    )  # fmt: skip
    print("losses %s" % json.dumps([round(float(each), 9) for each in history.history["loss"]]), flush=True)


if __name__ == "__main__":
    main()
