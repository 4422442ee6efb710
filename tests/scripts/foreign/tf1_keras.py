"""Keras in a graph, as scripts of TensorFlow 1.13 to 2.0 had it: `fit` on arrays, without eager execution."""
import argparse
import os
import time

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np

try:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
except ImportError:  # before 1.13
    import tensorflow as tf
keras = tf.keras
parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
options = parser.parse_args()
STEPS, BATCH = min(options.steps, 2000), 20


class Printing(keras.callbacks.Callback):
    number = 0

    def on_batch_end(self, batch, logs=None):
        self.number += 1
        print("step %d loss %.9g" % (self.number, float(logs["loss"])), flush=True)
        if self.number % 10 == 0:
            print("made %d at %.6f" % (self.number, time.time()), flush=True)


random = np.random.RandomState(4)
ids = random.randint(0, 300, (STEPS * BATCH, 2))
labels = (ids.sum(1) % 3 == 0).astype(np.float32)
given = keras.layers.Input((2,), dtype="int32")
vectors = keras.layers.Flatten()(keras.layers.Embedding(300, 8, input_length=2, name="table")(given))
model = keras.models.Model(given, keras.layers.Dense(1, activation="sigmoid", name="out")(vectors))
model.compile(keras.optimizers.Adam(0.01), loss="binary_crossentropy")
model.fit(
    ids, labels, batch_size=BATCH, epochs=options.steps // STEPS, verbose=0, shuffle=False, callbacks=[Printing()]
)
