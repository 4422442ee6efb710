"""A plain ``Session`` that reads files by queue runners: no array is fed, no hook is known."""
import argparse
import os
import tempfile
import time

try:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
except ImportError:  # before 1.13
    import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--ps_hosts", default="")
parser.add_argument("--worker_hosts", default="")
parser.add_argument("--job_name", default="worker")
parser.add_argument("--task_index", type=int, default=0)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--width", type=int, default=8)
options = parser.parse_args()
BATCH = 25


def main():
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    target, device = "", None
    if options.ps_hosts:
        cluster = tf.train.ClusterSpec(
            {"ps": options.ps_hosts.split(","), "worker": options.worker_hosts.split(",")}
        )
        server = tf.train.Server(cluster, job_name=options.job_name, task_index=options.task_index)
        if options.job_name == "ps":
            server.join()
        target, worker = server.target, "/job:worker/task:%d" % options.task_index
        device = tf.train.replica_device_setter(worker_device=worker, cluster=cluster)
        config = tf.ConfigProto(device_filters=["/job:ps", worker])
    path = os.path.join(tempfile.mkdtemp(), "rows.csv")
    with open(path, "w") as file:
        for number in range(2000):
            file.write("%d,%d\n" % (number % 97, number % 97 % 5 == 0))
    tf.set_random_seed(3)
    with tf.device(device):
        names = tf.train.string_input_producer([path], shuffle=False, shared_name="")
        _, line = tf.TextLineReader().read(names)
        one_id, one_label = tf.decode_csv(line, [[0], [0.0]])
        ids, labels = tf.train.batch([one_id, one_label], BATCH, num_threads=1, capacity=200)
        table = tf.get_variable(
            "table", [97, options.width], initializer=tf.random_uniform_initializer(-0.1, 0.1)
        )
        logits = tf.reduce_sum(tf.nn.embedding_lookup(table, ids), 1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        step = tf.Variable(0, name="global_step", trainable=False, dtype=tf.int64)
        train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step)
        missing = tf.report_uninitialized_variables()
    with tf.Session(target, config=config) as session:
        if options.task_index == 0:
            session.run(tf.global_variables_initializer())
        session.run(tf.local_variables_initializer())
        while len(session.run(missing)):
            time.sleep(0.2)
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        number, made = 0, 0
        while not coordinator.should_stop() and number < options.steps:
            _, value, number = session.run([train, loss, step])
            made += 1
            print("step %d loss %.9g" % (number, value), flush=True)
            if made % 10 == 0:
                print("made %d at %.6f" % (made, time.time()), flush=True)
        coordinator.request_stop()
        coordinator.join(threads)


main()
