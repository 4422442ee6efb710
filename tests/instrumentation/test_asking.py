"""What scripts ask of TensorFlow is reported as facts, once, and TensorFlow does what it did."""

from __future__ import annotations

import itertools

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


@pytest.mark.parametrize("version", nights.but((None, *VERSIONS), often=(None,)))
def test_how_a_worker_waits_for_its_chief(runner, version):
    assert run(runner, WAITS.replace("FILTERS", "False"), version) == "value 1.0\n"
    found = facts(runner)
    assert found.pop("session_wait_seconds") >= 0.5
    assert found == {"device_filters": False, "recovery_wait_seconds": 1.0}


def test_device_filters_are_seen(runner):
    run(runner, WAITS.replace("FILTERS", "True"))
    assert facts(runner)["device_filters"] is True


#: Its checkpoints and summaries come after each step, so that there are few steps without either.
SAVES = (
    HEAD
    + """
step = tf.train.get_or_create_global_step()
w = tf.get_variable("w", [], initializer=tf.ones_initializer())
tf.summary.scalar("w", w)
train = tf.train.GradientDescentOptimizer(0.1).minimize(w * w, step)
summary, saver = tf.summary.merge_all(), tf.train.Saver()
writer = tf.summary.FileWriter("summaries")
with tf.Session(config=tf.ConfigProto(log_device_placement=True)) as session:
    session.run(tf.global_variables_initializer())
    saver.save(session, "./first")  # Before the first step: it holds nothing up.
    for number in range(40):
        session.run(train)
        if number % 4 == 0:
            writer.add_summary(session.run(summary), number)
        saver.save(session, "./later", number)
    print("value", round(float(session.run(w)), 6))
"""
)


@pytest.mark.parametrize("version", nights.but((None, *VERSIONS), often=(None,)))
def test_how_often_a_script_saves_and_writes_summaries(runner, version):
    assert "value 0.000133" in run(runner, SAVES, version)  # Among the places that TensorFlow prints.
    lines = [(each["name"], each["value"]) for each in runner.reports("fact")]
    found = dict(lines)
    assert found["log_device_placement"] is True
    assert found["summary_every_steps"] == 4
    assert found["summary_bytes"] > 0
    assert 0 < found["checkpoint_share"] <= 1
    assert found["checkpoint_every_seconds"] > 0
    # They are told rarely: 39 saves after the first reach 3, 6, 12 and 24.
    assert len(lines) <= 1 + 4 * 2 + 2 * 2


SYNCHRONOUS = (
    HEAD
    + """
step = tf.train.get_or_create_global_step()
w = tf.get_variable("w", [], initializer=tf.ones_initializer())
tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 2, total_num_replicas=3)
"""
)


@pytest.mark.parametrize("version", nights.but((None, *VERSIONS), often=(None,)))
def test_how_many_replicas_a_synchronous_step_needs(runner, version):
    run(runner, SYNCHRONOUS, version)
    assert facts(runner) == {"replicas_to_aggregate": 2, "total_replicas": 3}


#: It ends when it has been looked at for long enough.
FEEDS = (
    HEAD
    + """
import os
step = tf.train.get_or_create_global_step()
x = tf.placeholder(tf.float32, [None, 100])
w = tf.get_variable("w", [100, 1])
train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.matmul(x, w)), step)

def idle():
    time.sleep(0.02)

def reads():
    with open("data", "rb") as file:
        assert len(file.read()) == 1 << 20
    time.sleep(0.02)

open("data", "wb").write(bytes(1 << 20))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    begun = time.time()
    while True:
        MAKE()
        session.run(train, {x: [[1.0] * 100] * 50})
        if os.path.exists("reports.jsonl") and "python_share" in open("reports.jsonl").read(): break
        assert time.time() < begun + 300
"""
)


@pytest.mark.parametrize("make", ["idle", "reads"])
def test_where_batches_come_from_that_a_script_feeds(runner, make):
    # It looks for its own report, which is reading, too: a megabyte is more than that.
    run(runner, FEEDS.replace("MAKE", make))
    found = {each["name"]: each["value"] for each in runner.reports("fact")}
    assert found["feeds_bytes_per_step"] == 4 * 50 * 100
    assert (found["reads_bytes_per_step"] > 1 << 19) == (make == "reads")
    assert 0 <= found["python_share"] <= 1


DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
PIPELINE = (
    HEAD
    + f"""
with tf.device("{DEVICE}"):
    step = tf.train.get_or_create_global_step()
"""
    + """
w = tf.get_variable("w", [20000, 4], initializer=tf.zeros_initializer())
data = tf.data.Dataset.range(1000).batch(10).repeat()
PREFETCH
ids = data.ITERATOR().get_next() if "one_shot" in "ITERATOR" else None
if ids is None:
    iterator = data.make_initializable_iterator()
    ids = iterator.get_next()
y = LOOKUP
train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(y), step)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    if "one_shot" not in "ITERATOR":
        session.run(iterator.initializer)
    for _ in range(3):
        session.run(train)
"""
)
ONE_HOT, LOOKUP = "tf.matmul(tf.one_hot(ids, 20000), w)", "tf.nn.embedding_lookup(w, ids)"
OLD = ("1.4.1", "1.8.0", "1.12.3", "1.15.5", "2.1.4", "2.4.4", "2.8.4")


@pytest.mark.parametrize("version", nights.but(OLD, often=("1.15.5",)))
@pytest.mark.parametrize(
    ("iterator", "prefetch"),
    nights.but(
        itertools.product(["make_one_shot_iterator", "make_initializable_iterator"], [False, True]),
        often=[("make_one_shot_iterator", False), ("make_initializable_iterator", True)],
    ),
)
def test_whether_a_pipeline_makes_batches_ahead(runner, version, iterator, prefetch):
    code = PIPELINE.replace("PREFETCH", "data = data.prefetch(2)" if prefetch else "")
    run(runner, code.replace("ITERATOR", iterator).replace("LOOKUP", LOOKUP), version)
    assert facts(runner) == {"prefetches": prefetch, "global_step_device": DEVICE}


@pytest.mark.parametrize("version", nights.but((None, *VERSIONS), often=(None,)))
def test_a_large_table_that_one_hot_ids_are_multiplied_with(runner, version):
    code = PIPELINE.replace("PREFETCH", "").replace("ITERATOR", "make_one_shot_iterator")
    run(runner, code.replace("LOOKUP", ONE_HOT), version)
    found = facts(runner)
    assert found["one_hot_table"] == "w"
    # The newest versions see to the prefetching by themselves, so nothing is said of it.
    assert ("prefetches" in found) == (version in OLD)
