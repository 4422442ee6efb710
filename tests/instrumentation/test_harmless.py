"""A script does what it did, however it starts processes, and wherever our reports cannot be written."""

from __future__ import annotations

import re
import zipapp
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
#: What differs between two runs of the same script: times, processes, addresses.
CHANGES = re.compile(r"0x[0-9a-f]+|\d+")
SCRIPT = '''
"""Trains in the way that its argument names."""
import multiprocessing
import os
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


def lines(text: str) -> list[str]:
    """What a script has written, without what differs anyway; TensorFlow's threads write in any order."""
    return sorted(
        " ".join(CHANGES.sub("N", line).split()) for line in text.splitlines() if "paceline" not in line
    )


def assert_alike(runner, *command: str, **more: str) -> None:
    seen = runner.run(*command, environment=runner.environment(**more))
    alone = runner.run(*command, environment=runner.environment(**more, PACELINE_INSTRUMENTATION="off"))
    assert seen.stdout == alone.stdout != ""
    assert seen.returncode == alone.returncode
    assert lines(seen.stderr) == lines(alone.stderr)


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
