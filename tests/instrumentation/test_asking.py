"""What scripts ask of TensorFlow is reported as facts, once, and TensorFlow does what it did."""

from __future__ import annotations

import pytest
from support import interpreters, nights
from support.styles import VERSIONS

pytestmark = pytest.mark.slow
HEAD = """
import threading, time
import tensorflow as tf
if hasattr(tf, "compat") and hasattr(tf.compat, "v1") and hasattr(tf.compat.v1, "disable_v2_behavior"):
    tf = tf.compat.v1
    tf.disable_v2_behavior()
"""
#: A worker waits for a chief as in a MonitoredTrainingSession; here both are sessions of one server.
WAITS = (
    HEAD
    + """
server = tf.train.Server.create_local_server()
variable = tf.get_variable("v", [], initializer=tf.ones_initializer())
ready = tf.report_uninitialized_variables()
config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:1"]) if FILTERS else None

def chief():
    time.sleep(0.5)
    with tf.Session(server.target, graph=variable.graph, config=config) as session:
        session.run(variable.initializer)

thread = threading.Thread(target=chief)
thread.start()
manager = tf.train.SessionManager(ready_op=ready, graph=variable.graph, recovery_wait_secs=1)
with manager.wait_for_session(server.target, config=config) as session:
    print("value", session.run(variable))
thread.join()
with tf.Session() as session:  # Of this process alone: its configuration says nothing.
    session.run(tf.no_op())
"""
)


def facts(runner) -> dict[str, object]:
    """What was said, each once."""
    lines = runner.reports("fact")
    assert all(each["source"] == "instrumentation" for each in lines)
    found = {each["name"]: each["value"] for each in lines}
    assert len(found) == len(lines), "a fact is said again"
    return found


def run(runner, code: str, version: str | None = None) -> str:
    done = runner.code(code, python=str(interpreters.with_tensorflow_or_skip(version)))
    assert done.returncode == 0, done.stderr
    said = [each["message"] for each in runner.reports("instrumentation")]
    assert not [each for each in said if "cannot be looked" in each or "error of its own" in each]
    return done.stdout


@pytest.mark.parametrize("version", nights.but((None, *VERSIONS), often=(None, "1.4.1")))
def test_how_a_worker_waits_for_its_chief(runner, version):
    assert run(runner, WAITS.replace("FILTERS", "False"), version) == "value 1.0\n"
    found = facts(runner)
    assert found.pop("session_wait_seconds") >= 0.5
    assert found == {"device_filters": False, "recovery_wait_seconds": 1.0}


def test_device_filters_are_seen(runner):
    run(runner, WAITS.replace("FILTERS", "True"))
    assert facts(runner)["device_filters"] is True
