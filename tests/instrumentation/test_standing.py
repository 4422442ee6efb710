"""What a trainer does while no step ends is said, by its stack and its count alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest

from paceline.instrumentation.paceline_instrumentation import guarding, standing
from paceline.model.jobs.runs import STANDING
from paceline.model.roles import ReplicaId, Role
from paceline.sources import spools

SCRIPT = """
import sys
import numpy
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
fed = tf.placeholder(tf.float32, [None, 2])
weights = tf.get_variable("weights", [2, 1])
loss = tf.reduce_mean(tf.square(tf.matmul(fed, weights)))
train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)


def batch(number):
    if number == 30:
        open("stood", "r").read()
    return numpy.ones([4, 2])


with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for number in range(60):
        session.run(train, {fed: batch(number)})
print("done")
"""


class Lines:
    """A reporter that keeps what it is given."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def owns(self) -> bool:
        return True

    def append(self, kind: str, fields: dict[str, Any]) -> bool:
        self.lines.append((kind, fields))
        return True

    def say(self, message: str) -> None:
        raise AssertionError(message)


class Clock:
    now = 100.0
    used = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(standing, "clock", clock)
    monkeypatch.setattr(time, "process_time", lambda: clock.used)
    return clock


def watch(reporter: Lines, steps: list[int]) -> Any:
    found: Any = standing.StandWatch(reporter, guarding.Guard(reporter), lambda: steps[0])
    found._thread = -1
    return found


def looked(found: Any, clock: Clock, seconds: int) -> None:
    for _ in range(seconds // 2):
        clock.now += 2
        found.look()


def test_a_trainer_that_stands_for_ten_steps_says_so_once(clock: Clock) -> None:
    reporter, steps = Lines(), [0]
    found = watch(reporter, steps)
    for _ in range(20):  # A step takes two seconds: ten of them are twenty.
        steps[0] += 1
        looked(found, clock, 2)
    looked(found, clock, 18)
    assert reporter.lines == []
    looked(found, clock, 30)
    ((kind, said),) = reporter.lines
    assert (kind, said["doing"]) == ("standing", "between")
    steps[0] += 1
    looked(found, clock, 40)
    assert len(reporter.lines) == 2


def test_one_that_computes_says_that(clock: Clock) -> None:
    reporter = Lines()
    found = watch(reporter, [0])
    for _ in range(30):
        clock.used += 1.0
        looked(found, clock, 2)
    assert [said["doing"] for _, said in reporter.lines] == ["computing"]


@pytest.mark.parametrize(
    ("file", "doing"),
    [
        ("/lib/python3/site-packages/paceline/training/input/inputs.py", "input"),
        ("/lib/site-packages/tensorflow/python/data/ops/iterator_ops.py", "input"),
        ("/lib/site-packages/tensorflow_core/python/client/session.py", "step"),
        ("/lib/site-packages/tensorflow/python/eager/execute.py", "step"),
        ("/lib/site-packages/numpy/core.py", "between"),
    ],
)
def test_what_is_waited_for_follows_from_the_innermost_frame(file: str, doing: str) -> None:
    given: dict[str, Any] = {"sys": sys}
    exec(compile("def inner():\n    return sys._getframe()\n", file, "exec"), given)
    exec(compile("def train():\n    return inner()\n", "/home/me/train.py", "exec"), given)
    assert standing.place(given["train"]())[0] == doing


def test_the_place_is_a_line_of_the_script() -> None:
    assert standing.place(None) == ("between", "")
    assert standing.place(sys._getframe())[1].startswith("test_standing.py:")


@pytest.mark.slow
def test_a_script_that_waits_for_its_batches_says_where(runner) -> None:
    os.mkfifo(runner.folder / "stood")
    (runner.folder / "train.py").write_text(SCRIPT)
    process = subprocess.Popen([sys.executable, "train.py"], cwd=runner.folder, env=runner.environment())
    deadline = time.monotonic() + 300
    while not runner.reports("standing"):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.2)
    (runner.folder / "stood").write_text("go on")
    assert process.wait(300) == 0
    (said,) = runner.reports("standing")
    assert (said["doing"], said["where"]) == ("between", "train.py:15 (batch)")
    read = spools.parse(json.dumps(said).encode(), replica=ReplicaId(Role.WORKER, 0), attempt=1, offset=0)
    (event,) = read.events
    assert (event.kind, event.message, event.at) == (STANDING, "between: train.py:15 (batch)", said["since"])
    assert sum(each["steps"] for each in runner.reports("step")) == 60
