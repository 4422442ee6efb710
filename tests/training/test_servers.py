"""Parameter servers as processes: they serve, take little memory, and say why they cannot start."""

import signal
import socket

import pytest

pytestmark = pytest.mark.slow

TRAINING = {"batch_size": 16, "hidden_units": [8], "embedding_dimension": 4}


def memory_bytes(pid):
    """The memory of a process that is no file's."""
    with open(f"/proc/{pid}/status") as status:
        (line,) = (line for line in status if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


def is_listening(address):
    host, port = address.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def test_a_server_keeps_variables_without_the_memory_of_tensorflows_python(job):
    import tensorflow as tf
    import tensorflow.compat.v1 as tf1

    processes = job(TRAINING, ps=1, worker=1)
    processes.start("ps", 0)
    address = processes.cluster["ps"][0]
    processes.await_that(lambda: is_listening(address), "a server")
    cluster = tf.train.ClusterSpec({"ps": [address], "worker": processes.cluster["worker"]})
    server = tf.distribute.Server(cluster, "worker", 0)
    with tf1.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            variable = tf1.get_variable("kept", initializer=tf.range(5.0), use_resource=True)
            doubled = variable.assign_add(variable.read_value())
        with tf1.Session(server.target, graph=graph) as session:
            session.run(variable.initializer)
            assert session.run(doubled).tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert memory_bytes(processes.running["ps", 0].pid) < 150e6
    assert processes.kill("ps", 0, signal.SIGTERM) == -signal.SIGTERM


def test_a_server_can_be_interrupted(job):
    processes = job(TRAINING, ps=1, worker=1)
    processes.start("ps", 0)
    processes.await_that(lambda: is_listening(processes.cluster["ps"][0]), "a server")
    assert processes.kill("ps", 0, signal.SIGINT) == -signal.SIGINT


def test_a_port_that_is_taken(job):
    processes = job(TRAINING, ps=1, worker=1)
    host, port = processes.cluster["ps"][0].split(":")
    with socket.create_server((host, int(port))):
        processes.start("ps", 0)
        assert processes.running["ps", 0].wait(timeout=600) == 1
    assert "cannot start: Could not start gRPC server (is its port free?)" in processes.log("ps", 0)
