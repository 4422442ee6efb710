"""``Model.fit`` on a dataset; prints what its callbacks heard, and what it has learned."""
import argparse
import importlib
import json

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--keras", default="tensorflow.keras")
parser.add_argument("--watched", action="store_true", help="by a callback that wants each batch")
parser.add_argument("--called", action="store_true", help="by Keras' callback that calls a function")
parser.add_argument("--own", type=int, help="steps in an execution")
options = parser.parse_args()
keras = importlib.import_module(options.keras)
ROWS, STEPS = 50, 11  # No multiple of the steps in an execution.


class Epochs(keras.callbacks.Callback):
    heard = 0

    def on_epoch_end(self, epoch, logs=None):
        self.heard += 1


class Batches(Epochs):
    def on_train_batch_end(self, batch, logs=None):
        self.heard += 1


def main():
    random = np.random.RandomState(2)
    model = keras.Sequential(
        [
            keras.layers.InputLayer((2,)),
            keras.layers.Embedding(ROWS, 4, name="table"),
            keras.layers.Flatten(),
            keras.layers.Dense(1, "sigmoid", name="dense"),
        ]
    )
    model.set_weights([random.uniform(-1, 1, np.shape(each)) for each in model.get_weights()])
    more = {} if options.own is None else {"steps_per_execution": options.own}
    model.compile(keras.optimizers.SGD(0.5), "binary_crossentropy", **more)
    ids = random.randint(0, ROWS, (STEPS * 16, 2))
    labels = (ids.sum(1) % 3 == 0).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((ids, labels[:, None])).batch(16)
    watch = Batches() if options.watched else Epochs()
    watches = [watch]
    if options.called:
        watches.append(keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: None))
    history = model.fit(data, epochs=3, verbose=0, callbacks=watches)
    called = getattr(model, "_steps_per_execution", None)
    result = {
        "losses": [float(each) for each in history.history["loss"]],
        "weights": [each.tolist() for each in model.get_weights()],
        "heard": watch.heard,
        "steps_per_execution": model.steps_per_execution if called is None else int(called.numpy()),
        "iterations": int(model.optimizer.iterations.numpy()),
    }
    print("result %s" % json.dumps(result), flush=True)


main()
