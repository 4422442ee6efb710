"""Wide and deep by an Estimator's ``train_and_evaluate``, alone or with parameter servers (``TF_CONFIG``)."""
import argparse
import json
import os
import sys
import tempfile
import time

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--width", type=int, default=8)
options = parser.parse_args()
BATCH, EVERY = 64, 100
train = tf.compat.v1.train if hasattr(tf, "compat") and hasattr(tf.compat, "v1") else tf.train


def examples():
    random = np.random.RandomState(3)
    users = random.randint(0, 5000, 4096).astype(np.int64)
    ages = random.normal(size=4096).astype(np.float32)
    labels = (users * 7919 % 13 < 5).astype(np.int64)
    dataset = tf.data.Dataset.from_tensor_slices(({"user": users, "age": ages}, labels))
    return dataset.repeat().batch(BATCH).prefetch(2)


def validation():
    return examples().take(20)


class Printing(train.SessionRunHook):
    made = 0

    def after_run(self, context, values):
        Printing.made += 1
        if Printing.made % EVERY == 0:
            print("made %d at %.6f" % (Printing.made, time.time()), flush=True)


def main():
    column = tf.feature_column
    user = column.categorical_column_with_hash_bucket("user", 5000, dtype=tf.int64)
    deep = [column.embedding_column(user, options.width), column.numeric_column("age")]
    folder = os.environ.get("MODEL_DIR") or tempfile.mkdtemp()
    estimator = tf.estimator.DNNLinearCombinedClassifier(
        model_dir=folder, linear_feature_columns=[user], dnn_feature_columns=deep, dnn_hidden_units=[16],
        config=tf.estimator.RunConfig(tf_random_seed=7),
    )  # fmt: skip
    if "cluster" in json.loads(os.environ.get("TF_CONFIG", "{}")):
        tf.estimator.train_and_evaluate(
            estimator, tf.estimator.TrainSpec(examples, max_steps=options.steps, hooks=[Printing()]),
            tf.estimator.EvalSpec(validation, start_delay_secs=5, throttle_secs=5),
        )  # fmt: skip
        return
    estimator.train(examples, max_steps=options.steps, hooks=[Printing()])
    found = estimator.evaluate(validation)
    print("evaluated %s" % json.dumps({name: float(value) for name, value in found.items()}))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
