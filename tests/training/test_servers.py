"""Parameter servers as processes: they serve, take little memory, and say why they cannot start."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

TRAINING = {"batch_size": 16, "hidden_units": [8], "embedding_dimension": 4}


def memory_bytes(pid):
    """The memory of a process that is no file's."""
    with open(f"/proc/{pid}/status") as status:
        (line,) = (line for line in status if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


def mapped(pid):
    """The names of the files that a process has in its memory."""
    with open(f"/proc/{pid}/maps") as maps:
        return {Path(words[5]).name for words in map(str.split, maps) if len(words) > 5}


def is_listening(address):
    host, port = address.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def test_a_server_keeps_variables_without_the_memory_of_tensorflows_python(launched_job):
    import tensorflow as tf
    import tensorflow.compat.v1 as tf1

    processes = launched_job(TRAINING, ps=1, worker=1)
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
    pid = processes.running["ps", 0].pid
    assert memory_bytes(pid) < 150e6
    assert "libtensorflow_cc.so.2" in mapped(pid)
    assert not [name for name in mapped(pid) if name.startswith(("_pywrap", "_multiarray", "lib.cpython"))]
    assert processes.kill("ps", 0, signal.SIGTERM) == -signal.SIGTERM


WATCHED = """
import json, os, runpy, sys
def execv(program, arguments):
    names = ("tensorflow", "keras", "tf_keras", "pandas")
    os.write(1, json.dumps([arguments[1:], [name for name in names if name in sys.modules]]).encode())
    os._exit(7)
os.execv = execv
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_a_server_begins_before_anything_has_imported_tensorflow(tmp_path, tiny_data):
    """What the script of a job has imported when its process becomes a server."""
    config = {
        "cluster": {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]},
        "task": {"type": "ps", "index": 0},
    }
    command = [sys.executable, "-c", WATCHED, str(ROOT / "tests/training/tiny_job.py")]
    done = subprocess.run(
        [*command, *map(str, tiny_data)],
        env={"PYTHONPATH": str(ROOT / "src"), "TF_CONFIG": json.dumps(config)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 7, done.stderr
    (*_, program, library, descriptor), imported = json.loads(done.stdout)
    assert Path(program).name == "lean_server.py"
    assert Path(library).name == "libtensorflow_cc.so.2"
    assert descriptor.isdecimal()
    assert imported == []


def test_a_server_can_be_interrupted(launched_job):
    processes = launched_job(TRAINING, ps=1, worker=1)
    processes.start("ps", 0)
    processes.await_that(lambda: is_listening(processes.cluster["ps"][0]), "a server")
    assert processes.kill("ps", 0, signal.SIGINT) == -signal.SIGINT


def test_a_port_that_is_taken(launched_job):
    processes = launched_job(TRAINING, ps=1, worker=1)
    host, port = processes.cluster["ps"][0].split(":")
    with socket.create_server((host, int(port))):
        processes.start("ps", 0)
        assert processes.running["ps", 0].wait(timeout=600) == 1
    assert "cannot start: Could not start gRPC server (is its port free?)" in processes.log("ps", 0)
