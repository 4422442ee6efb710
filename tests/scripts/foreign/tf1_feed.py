"""The shortest loop: ``Session``, ``feed_dict``, no global step, and now and then an evaluation."""
import sys

import numpy as np

try:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
except ImportError:  # before 1.13
    import tensorflow as tf

STEPS, BATCH = int(sys.argv[1]) if len(sys.argv) > 1 else 200, 40
x = tf.placeholder(tf.float32, [None, 10])
y = tf.placeholder(tf.int64, [None])
w = tf.Variable(tf.zeros([10, 3]))
b = tf.Variable(tf.zeros([3]))
logits = tf.matmul(x, w) + b
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
random = np.random.RandomState(2)
held = random.normal(size=(500, 10))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for number in range(1, STEPS + 1):
        rows = random.normal(size=(BATCH, 10))
        _, value = session.run([train, loss], feed_dict={x: rows, y: rows[:, :3].argmax(1)})
        print("step %d loss %.9g" % (number, value), flush=True)
        if number % 50 == 0:
            print("accuracy %.4f" % session.run(accuracy, {x: held, y: held[:, :3].argmax(1)}), flush=True)
