"""Scripts that drive a session are seen as they are, and do what they did."""

from __future__ import annotations

import json
import math
import re
import zipfile

import pytest
from support.styles import SCRIPTS

from paceline.sources import traces
from paceline.specs.job_file import variable_files

pytestmark = pytest.mark.slow
MONITORED = str(SCRIPTS / "tf1_monitored.py")
TRACE = "2026-01-02T03-04-05.678Z"


def test_steps_loss_variables_and_a_trace_of_a_monitored_session(runner):
    (runner.folder / "traces").mkdir()
    (runner.folder / "traces" / "request").write_text(TRACE)
    done = runner.run(MONITORED, "--steps=300", "--pause=0.01")
    assert done.returncode == 0, done.stderr
    printed = dict(re.findall(r"^step (\d+) loss (\S+)$", done.stdout, re.MULTILINE))
    assert len(printed) == 300

    reports = runner.reports("step")
    assert sum(each["steps"] for each in reports) == 300
    assert {each["total_steps"] for each in reports} == {300}
    for each in reports[:-1]:
        assert each["loss"] == pytest.approx(float(printed[str(each["step"])]), rel=1e-6)
        assert each["examples"] == 64 * each["steps"]
        # Before the first step nothing is waited for.
        assert (each is reports[0]) == (each["input_wait_seconds"] == 0)
        assert each["input_wait_seconds"] < each["interval_seconds"]
    said = [each["message"] for each in runner.reports("instrumentation")]
    assert [each.split(" ")[0] for each in said] == ["TensorFlow", "its"]
    assert said[1].endswith("made by sessions; loss: Mean:0; global step: global_step/read:0; batch: fed")

    variables = {each.name: each for each in variable_files.load_variables(runner.folder / "variables.json")}
    assert sorted(variables) == ["table_0", "table_1", "table_2", "weights"]
    table = variables["table_0"]
    assert (table.shape, table.sparse, table.slots, table.value_type) == ((5000, 8), True, 2, "float32")
    # Adam changes all rows of its moments and of the table, whatever rows a batch uses.
    assert table.updates == ("Assign", "AssignSub", "ScatterAdd")
    assert variables["weights"].updates == ("ApplyAdam",)
    assert not variables["weights"].sparse
    assert variables["weights"].step_bytes == 2 * 4 * math.prod(variables["weights"].shape)

    (found,) = traces.read(runner.folder, TRACE).traces
    assert (found.trainer, found.attempt) == ("worker-0", 1)
    assert len(found.splits) == 1
    assert runner.folder.joinpath("reports.jsonl.owner").exists()


def test_the_script_does_what_it_did(runner):
    """The losses are the same to the last digit, and so is all that it says, but for times and numbers."""
    seen = runner.run(MONITORED, "--steps=150", "--pause=0.01")
    assert runner.reports("step")
    left_alone = runner.run(
        MONITORED,
        "--steps=150",
        "--pause=0.01",
        environment=runner.environment(PACELINE_INSTRUMENTATION="off"),
    )

    def steps(text: str) -> list[str]:
        return [line for line in text.splitlines() if not line.startswith(("rate", "made"))]

    assert seen.returncode == left_alone.returncode == 0
    assert steps(seen.stdout) == steps(left_alone.stdout)
    assert runner.lines(seen.stderr) == runner.lines(left_alone.stderr)


MANY_KINDS = """
import json, sys
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
with tf.Graph().as_default():
    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    # Its own batches: to fetch a row count must not take one more.
    queue = tf.train.batch([tf.random_uniform([4])], batch_size=16, num_threads=1, capacity=64)
    own = tf.get_variable("own", [4, 1])
    other = tf.get_variable("other", [4, 1])
    noise = tf.random_uniform([])
    generator = tf.reduce_mean(tf.square(tf.matmul(x, own) - 1), name="generator")
    error = tf.reduce_mean(tf.square(tf.matmul(queue, other) - 1))
    discriminator = tf.add(error, 0 * noise, name="discriminator")
    step = tf.train.create_global_step()
    first = tf.train.GradientDescentOptimizer(0.1).minimize(generator, var_list=[own])
    second = tf.train.GradientDescentOptimizer(0.1).minimize(discriminator, step, var_list=[other])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        feed = {x: [[1.0, 2.0, 3.0, 4.0]] * 5}
        call = session.make_callable([second, discriminator])
        for number in range(40):
            session.run([first, generator], feed)     # the other half of a pair: no step
            session.run(generator, feed)              # an evaluation
            if number % 2:
                session.run(second)
            else:
                call()
        print(session.run(step), json.dumps(session.run([own, other, noise]), default=lambda v: v.tolist()))
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=5, ignore_live_threads=True)
"""


def test_only_runs_that_make_a_step_count(runner):
    seen = runner.code(MANY_KINDS)
    assert seen.returncode == 0, seen.stderr
    assert seen.stdout.startswith("40 ")
    assert sum(each["steps"] for each in runner.reports("step")) == 40
    alone = runner.code(MANY_KINDS, environment=runner.environment(PACELINE_INSTRUMENTATION="off"))
    assert json.loads(seen.stdout[3:])[0] == json.loads(alone.stdout[3:])[0]
    (said,) = [each["message"] for each in runner.reports("instrumentation")[1:]]
    assert said.endswith("loss: discriminator:0; global step: global_step/read:0; batch: of 16 examples")


FAILS = """
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
x = tf.placeholder(tf.float32, [])
w = tf.get_variable("w", [])
step = tf.train.create_global_step()
loss = tf.check_numerics(w * x, "loss")
train = [tf.train.GradientDescentOptimizer(0.1).minimize(loss, step), loss]
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train, {x: 1.0})
    try:
        session.run(train)
    except tf.errors.InvalidArgumentError as error:
        print("not fed", type(error).__name__)
    session.run(train, {x: float("nan")})
"""


def test_an_error_of_a_step_is_the_scripts_own(runner):
    seen = runner.code(FAILS)
    alone = runner.code(FAILS, environment=runner.environment(PACELINE_INSTRUMENTATION="off"))
    assert seen.stdout == alone.stdout == "not fed InvalidArgumentError\n"
    assert seen.returncode == alone.returncode == 1
    assert seen.stderr.splitlines()[-1] == alone.stderr.splitlines()[-1]


def test_a_process_without_tensorflow_pays_for_a_finder_alone(runner):
    done = runner.code("import sys; print(*sorted(name for name in sys.modules if 'paceline' in name))")
    package = "paceline_instrumentation"
    assert done.stdout.split() == [package, f"{package}.loading", f"{package}.wiring"]


FED = """
import sys
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
with tf.Graph().as_default():
    tf.set_random_seed(1)
    ids = tf.placeholder(tf.int64, [None], name="ids")
    batch = tf.train.batch([tf.random_uniform([4])], batch_size=16, num_threads=1, capacity=64, name="own")
    table = tf.get_variable("table", [50, 4])
    looked_up = tf.nn.embedding_lookup(table, ids)
    loss = tf.reduce_mean(tf.square(looked_up)) + tf.reduce_mean(batch) * 0
    step = tf.train.create_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for number in range(30):
            # The batch is given in the place of what a queue has: that queue is never filled.
            session.run([train], {ids: [1, 2, 3], batch: [[0.0] * 4] * 16})
        print(session.run(step))
"""


def test_what_is_fed_is_not_fetched_and_what_it_stands_for_is_not_computed(runner):
    seen = runner.code(FED)
    assert seen.returncode == 0, seen.stderr
    assert seen.stdout == "30\n"
    reports = runner.reports("step")
    assert sum(each["steps"] for each in reports) == 30
    assert reports[-1]["step"] == 30
    assert reports[0]["examples"] == 16


CALLED = """
import sys
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
tf.set_random_seed(1)
x = tf.placeholder_with_default(tf.ones([4, 8]), [4, 8])
w = tf.get_variable("w", [8, 1])
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    if sys.argv[1] == "plain":
        call = session.make_callable([train, loss])
        step = lambda: call()[1]
    elif sys.argv[1] == "options":
        call = session.make_callable([train, loss], None, True)
        step = lambda: call(tf.RunOptions(), tf.RunMetadata())[1]
    elif sys.argv[1] == "fed":
        call = session.make_callable([train, loss], [x])
        step = lambda: call([[1.0] * 8] * 4)[1]
    else:
        from tensorflow.core.protobuf import config_pb2
        wanted = config_pb2.CallableOptions(feed=[x.name], fetch=[loss.name], target=[train.name])
        call = session._make_callable_from_options(wanted)
        step = lambda: call(np.ones([4, 8], np.float32))[0]
    print(*["%.9g" % step() for _ in range(40)])
"""


@pytest.mark.parametrize("way", ["plain", "fed", "named"])
def test_a_function_of_a_run_is_counted_and_traced(runner, way):
    alone = runner.run("-c", CALLED, way, environment=runner.environment(PACELINE_INSTRUMENTATION="off"))
    (runner.folder / "traces").mkdir()
    (runner.folder / "traces" / "request").write_text(f"{TRACE}\n")
    seen = runner.run("-c", CALLED, way)
    assert seen.returncode == 0, seen.stderr
    assert seen.stdout == alone.stdout
    assert sum(each["steps"] for each in runner.reports("step")) == 40
    with zipfile.ZipFile(runner.folder / "traces" / TRACE / "worker-0.1.zip") as archive:
        assert {"step.pb", "context.json"} == set(archive.namelist())
    read = traces.read(runner.folder, TRACE)
    assert read.broken == ()
    assert read.traces[0].splits[0].compute_microseconds > 0


def test_a_function_that_is_given_options_keeps_them(runner):
    alone = runner.run(
        "-c", CALLED, "options", environment=runner.environment(PACELINE_INSTRUMENTATION="off")
    )
    (runner.folder / "traces").mkdir()
    (runner.folder / "traces" / "request").write_text(f"{TRACE}\n")
    seen = runner.run("-c", CALLED, "options")
    assert seen.returncode == 0, seen.stderr
    assert seen.stdout == alone.stdout
    assert sum(each["steps"] for each in runner.reports("step")) == 40


PARTS = """
import os, time
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
users = tf.constant([0, 1, 7, 7])
items = tf.constant([[9, 5]])
table = tf.get_variable("table", [10, 4], partitioner=tf.fixed_size_partitioner(3))
halves = tf.get_variable("halves", [10, 4], partitioner=tf.fixed_size_partitioner(2, axis=1))
looked_up = [tf.nn.embedding_lookup(table, each, partition_strategy="div") for each in (users, items)]
columns = [tf.nn.embedding_lookup(each, users) for each in halves]
loss = sum(tf.reduce_sum(tf.square(each)) for each in looked_up + columns)
step = tf.train.get_or_create_global_step()
train = tf.train.AdagradOptimizer(0.1).minimize(loss, step)
# Rows are counted with each report, which is once a second.
from paceline_instrumentation import models
models.BATCHES = 2
described = os.path.join(os.environ["PACELINE_RUN_DIR"], "variables.json")
with tf.train.MonitoredTrainingSession() as session:
    until = time.time() + 120
    session.run(train)
    while time.time() < until and "rows_used\\": 5" not in open(described).read():
        session.run(train)
"""


def test_rows_of_a_table_that_is_cut_into_parts_and_looked_up_twice(runner):
    done = runner.code(PARTS)
    assert done.returncode == 0, done.stderr
    variables = {each.name: each for each in variable_files.load_variables(runner.folder / "variables.json")}
    table = variables["table"]
    assert table.shape == (10, 4)
    # Rows 0, 1, 7, 7 and 9, 5: as many ids as are sent, each with a row there and one back.
    assert table.rows_used == 5
    assert table.step_bytes == 6 * (2 * 16 + 4)
    assert table.row_shares == pytest.approx((1 / 6, 1 / 6, 0, 0, 0, 1 / 6, 0, 2 / 6, 0, 1 / 6), abs=1e-5)
    assert variables["halves"].rows_used is None, "which rows of a table that is cut into columns is not told"


STOPS = """
import sys
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
w = tf.get_variable("w", [4])
step = tf.train.create_global_step()
train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.square(w)), step)
# As after a restart: the checkpoint is of step 100.
init = tf.group(tf.global_variables_initializer(), tf.local_variables_initializer())
with tf.control_dependencies([init]):
    scaffold = tf.train.Scaffold(init_op=tf.assign(step, 100))
hook = tf.train.StopAtStepHook(**{sys.argv[1]: int(sys.argv[2])})
with tf.train.MonitoredTrainingSession(scaffold=scaffold, hooks=[hook]) as session:
    while not session.should_stop():
        made = session.run([train, step])[1]
print(made)
"""


@pytest.mark.parametrize(("option", "number"), [("num_steps", 30), ("last_step", 130)])
def test_the_last_step_is_where_the_hook_stops_also_after_a_restart(runner, option, number):
    done = runner.run("-c", STOPS, option, str(number))
    assert done.returncode == 0, done.stderr
    reports = runner.reports("step")
    assert sum(each["steps"] for each in reports) == 30
    assert {each["total_steps"] for each in reports} == {130}


TWO_GRAPHS = """
import tensorflow.compat.v1 as tf
from paceline_instrumentation import stepping
tf.disable_v2_behavior()
stepping.REPORT_SECONDS = 0.0
for table in ("users", "items"):
    with tf.Graph().as_default():
        ids = tf.constant([0, 1, 7], name=table + "_ids")
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(tf.get_variable(table, [10, 4]), ids)))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(10):
                session.run(train)
"""


def test_the_steps_of_a_second_graph_are_seen_too(runner):
    done = runner.code(TWO_GRAPHS)
    assert done.returncode == 0, done.stderr
    reports = runner.reports("step")
    assert sum(each["steps"] for each in reports) == 20
    assert [each for each in reports if each["loss"] is None] == []
    said = [each["message"] for each in runner.reports("instrumentation")]
    assert not [each for each in said if "error of its own" in each]
    (table,) = variable_files.load_variables(runner.folder / "variables.json")
    assert table.name == "users"
