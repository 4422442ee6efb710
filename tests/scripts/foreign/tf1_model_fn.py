"""An Estimator with a model function of its own, alone or with parameter servers (``TF_CONFIG``)."""
import argparse
import json
import os
import tempfile
import time

import numpy as np

try:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
except ImportError:  # before 1.13
    import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--width", type=int, default=8)
options = parser.parse_args()
ROWS, BATCH = 5000, 48


def examples():
    random = np.random.RandomState(3)
    users = random.randint(0, ROWS, 4096).astype(np.int64)
    labels = (users * 7919 % 13 < 5).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((users, labels)).repeat().batch(BATCH).prefetch(2)
    users, labels = dataset.make_one_shot_iterator().get_next()
    return {"user": users}, labels


class Printing(tf.train.SessionRunHook):
    def __init__(self, loss):
        self.loss, self.made = loss, 0

    def before_run(self, context):
        return tf.train.SessionRunArgs([self.loss, tf.train.get_global_step()])

    def after_run(self, context, values):
        loss, step = values.results
        self.made += 1
        print("step %d loss %.9g" % (step, loss))
        if self.made % 10 == 0:
            print("made %d at %.6f" % (self.made, time.time()), flush=True)


def model(features, labels, mode):
    table = tf.get_variable(
        "table", [ROWS, options.width], initializer=tf.random_uniform_initializer(-0.05, 0.05)
    )
    weights = tf.get_variable("weights", [options.width, 1])
    logits = tf.squeeze(tf.matmul(tf.nn.embedding_lookup(table, features["user"]), weights), 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    train = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train, training_hooks=[Printing(loss)])


def main():
    folder = os.environ.get("MODEL_DIR") or tempfile.mkdtemp()
    estimator = tf.estimator.Estimator(
        model, config=tf.estimator.RunConfig(model_dir=folder, tf_random_seed=7)
    )
    if "cluster" in json.loads(os.environ.get("TF_CONFIG", "{}")):
        training = tf.estimator.TrainSpec(examples, max_steps=options.steps)
        tf.estimator.train_and_evaluate(estimator, training, tf.estimator.EvalSpec(examples, steps=20))
        return
    estimator.train(examples, max_steps=options.steps)


if __name__ == "__main__":
    main()
