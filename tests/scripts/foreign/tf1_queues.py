"""A plain ``Session`` that reads files by queue runners: no array is fed, no hook is known."""
import os
import sys
import tempfile

try:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
except ImportError:  # before 1.13
    import tensorflow as tf

STEPS, BATCH = int(sys.argv[1]) if len(sys.argv) > 1 else 200, 25


def main():
    path = os.path.join(tempfile.mkdtemp(), "rows.csv")
    with open(path, "w") as file:
        for number in range(2000):
            file.write("%d,%d\n" % (number % 97, number % 97 % 5 == 0))
    tf.set_random_seed(3)
    names = tf.train.string_input_producer([path], shuffle=False)
    _, line = tf.TextLineReader().read(names)
    one_id, one_label = tf.decode_csv(line, [[0], [0.0]])
    ids, labels = tf.train.batch([one_id, one_label], BATCH, num_threads=1, capacity=200)
    table = tf.get_variable("table", [97, 8], initializer=tf.random_uniform_initializer(-0.1, 0.1))
    logits = tf.reduce_sum(tf.nn.embedding_lookup(table, ids), 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    step = tf.Variable(0, name="global_step", trainable=False, dtype=tf.int64)
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step)
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.Session(config=config) as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        number = 0
        while not coordinator.should_stop() and number < STEPS:
            _, value, number = session.run([train, loss, step])
            print("step %d loss %.9g" % (number, value), flush=True)
        coordinator.request_stop()
        coordinator.join(threads)


main()
