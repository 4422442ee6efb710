"""A ``Supervisor`` with a loop of fed batches, as scripts of TensorFlow 1.0 had it."""
import sys

import numpy as np

try:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
except ImportError:  # before 1.13
    import tensorflow as tf

STEPS, BATCH = int(sys.argv[1]) if len(sys.argv) > 1 else 200, 50


def main():
    with tf.Graph().as_default():
        ids = tf.placeholder(tf.int32, [BATCH], name="ids")
        labels = tf.placeholder(tf.float32, [BATCH], name="labels")
        global_step = tf.Variable(0, name="global_step", trainable=False)
        table = tf.Variable(tf.zeros([1000, 4]), name="table")
        weights = tf.Variable(tf.ones([4, 1]), name="weights")
        logits = tf.squeeze(tf.matmul(tf.nn.embedding_lookup(table, ids), weights), [1])
        cost = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        train = tf.train.AdagradOptimizer(0.1).minimize(cost, global_step=global_step)
        supervisor = tf.train.Supervisor(
            is_chief=True, logdir=None, summary_op=None, global_step=global_step, recovery_wait_secs=1
        )
        random = np.random.RandomState(1)
        with supervisor.managed_session() as session:
            number = 0
            while not supervisor.should_stop() and number < STEPS:
                rows = random.randint(0, 1000, BATCH)
                _, value, number = session.run(
                    [train, cost, global_step], {ids: rows, labels: (rows % 3 == 0).astype(np.float32)}
                )
                print("step %d loss %.9g" % (number, value), flush=True)
        supervisor.stop()


main()
