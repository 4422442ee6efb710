"""A script does what it did, however it starts processes, and wherever our reports cannot be written."""

from __future__ import annotations

import subprocess
import zipapp
from pathlib import Path

import pytest

from paceline.instrumentation.paceline_instrumentation import traces as kept_traces
from paceline.sources import traces
from paceline.specs.job_file import variable_files

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
SCRIPT = '''
"""Trains in the way that its argument names."""
import multiprocessing
import os
import subprocess
import sys


def train(name):
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [None, 8])
        weights = tf.get_variable("weights", [8, 1])
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))
        step = tf.train.get_or_create_global_step()
        train = tf.train.AdamOptimizer(0.01).minimize(loss, step)
        session.run(tf.global_variables_initializer())
        for number in range(30):
            value = session.run([train, loss], {x: [[number / 30.0] * 8] * 4})[1]
            print(name, number, "%.9g" % value, flush=True)


def by_fork(before, after):
    if before:
        train("before")
    child = os.fork()
    if child == 0:
        if after:
            train("child")
        sys.stdout.flush()
        os._exit(7)
    print("child ended with", os.waitpid(child, 0)[1] >> 8, flush=True)


def by_multiprocessing(method):
    context = multiprocessing.get_context(method)
    process = context.Process(target=train, args=("child",))
    process.start()
    process.join()
    with context.Pool(1) as pool:
        pool.map(train, ["pooled"])
    print("child ended with", process.exitcode, flush=True)


def main():
    way = sys.argv[1]
    if way == "plain":
        train("alone")
    elif way == "fails":
        train("alone")
        raise SystemExit("it fails")
    elif way == "fork-first":
        by_fork(False, True)
    elif way == "fork-later":
        by_fork(True, False)
    else:
        by_multiprocessing(way)


if __name__ == "__main__":
    main()
'''


def assert_alike(runner, *command: str, **more: str) -> None:
    seen = runner.run(*command, environment=runner.environment(**more))
    alone = runner.run(*command, environment=runner.environment(**more, PACELINE_INSTRUMENTATION="off"))
    assert seen.stdout == alone.stdout != ""
    assert seen.returncode == alone.returncode
    assert said(runner, seen) == said(runner, alone)


def said(runner, done: subprocess.CompletedProcess[str]) -> list[str]:
    """What is on its stderr, without the lines in which it says what cannot be seen."""
    return [line for line in runner.lines(done.stderr) if "paceline" not in line]


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return str(path)


@pytest.mark.parametrize("way", ["plain", "fails", "fork-first", "fork-later", "fork", "spawn", "forkserver"])
def test_processes_of_all_kinds(runner, script, way):
    assert_alike(runner, script, way)
    # A process that leaves without the end that Python gives it does not say what it did in its last second.
    steps = sum(each["steps"] for each in runner.reports("step"))
    assert steps == 30 if way in ("plain", "fails", "fork-later") else 1 <= steps <= 60


@pytest.mark.parametrize("place", ["full", "missing", "not allowed", "a folder"])
def test_a_place_that_cannot_be_written_to(runner, script, tmp_path, place):
    reports = tmp_path / "reports.jsonl"
    where = {"full": reports, "missing": tmp_path / "no" / "x.jsonl", "not allowed": Path("/proc/x.jsonl")}
    if place == "full":
        reports.symlink_to("/dev/full")
    path = where.get(place, tmp_path)
    assert_alike(runner, script, "plain", PACELINE_REPORT_FILE=str(path), PACELINE_RUN_DIR=str(path.parent))


def test_a_program_in_one_file(runner, tmp_path):
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "__main__.py").write_text(SCRIPT)
    zipapp.create_archive(folder, tmp_path / "program.pyz")
    assert_alike(runner, str(tmp_path / "program.pyz"), "plain")
    assert sum(each["steps"] for each in runner.reports("step")) == 30


#: Forks trainers and kills each: one half of them some time after they were forked, the other half some time
#: after their first step. The last one ends by itself, when it has left a trace.
KILLED = """
import os, random, signal, sys, time
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
chance = random.Random(1)
os.makedirs("traces")


def train(is_last, pipe):
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.Session(config=config) as session:
        x = tf.placeholder(tf.float32, [None, 8])
        weights = tf.get_variable("weights", [8, 1])
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))
        train = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_or_create_global_step())
        session.run(tf.global_variables_initializer())
        while not (is_last and os.path.exists(os.path.join("traces", name, "worker-0.1.zip"))):
            session.run(train, {x: [[0.5] * 8] * 4})
            if pipe is not None:
                os.write(pipe, b".")
                pipe = None


kills = int(sys.argv[1])
for number in range(kills + 1):
    name = "2026-01-02T03-04-%02d.%03dZ" % divmod(number, 1000)
    with open("request", "w") as file:
        file.write(name + "\\n")
    os.rename("request", "traces/request")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        train(number == kills, writing)
        sys.exit(0)
    if number < kills:
        if number % 2:
            os.read(reading, 1)
        time.sleep(chance.uniform(0.0, 0.3))
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)
"""


def test_a_thousand_kills_leave_nothing_behind(runner, tmp_path_factory):
    kills = 1000
    script = runner.folder / "killed.py"
    script.write_text(KILLED)
    # TensorFlow has a cache of its own in the home folder.
    environment = runner.environment(HOME=str(tmp_path_factory.mktemp("home")))
    done = runner.run(str(script), str(kills), environment=environment)
    assert done.returncode == 0, done.stderr
    script.unlink()
    assert sorted(each.name for each in runner.folder.iterdir()) == [
        "reports.jsonl", "reports.jsonl.owner", "traces", "variables.json",
    ]  # fmt: skip
    assert len(variable_files.load_variables(runner.folder / "variables.json")) == 1
    files = [each for each in runner.folder.joinpath("traces").rglob("*") if each.is_file()]
    taken = [each for each in files if each.name != "request"]
    assert {each.name for each in taken} == {"worker-0.1.zip"}
    assert all(traces.read_file(each).splits for each in taken)
    assert 1 <= len(taken) <= kept_traces.KEPT
    assert len(runner.reports("step")) > kills / 4
