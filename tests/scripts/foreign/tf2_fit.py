"""``Model.fit`` of Keras on a dataset, in one process or under a ``ParameterServerStrategy`` (``TF_CONFIG``)."""
import json
import os
import sys
import time

import numpy as np
import tensorflow as tf

if "--keras3" in sys.argv:
    import keras
else:
    try:
        import tf_keras as keras
    except ImportError:
        keras = tf.keras
STEPS, EPOCHS, BATCH = 60, 3, 32


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
            keras.layers.Embedding(500, 8, name="table"),
            keras.layers.Flatten(),
            keras.layers.Dense(1, "sigmoid"),
        ]
    )
    made.compile(keras.optimizers.Adam(0.01), "binary_crossentropy")
    return made


class Slowly(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(float(os.environ.get("PAUSE", "0")))


def main():
    tf.keras.utils.set_random_seed(7) if hasattr(tf.keras.utils, "set_random_seed") else tf.random.set_seed(7)
    task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task")
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
        data, steps_per_epoch=STEPS, epochs=EPOCHS, verbose=2, callbacks=[] if task else [Slowly()]
    )
    print("losses %s" % json.dumps([round(float(each), 9) for each in history.history["loss"]]), flush=True)


if __name__ == "__main__":
    main()
