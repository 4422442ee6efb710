"""What the instrumentation costs an unchanged script: one process, with it and without it in turn.

The speed of a shared machine drifts within a second by more than what is measured. So the two sides lie 50 ms
apart, in random order, in one process and one session: the method of TensorFlow that is wrapped is put back
for the time without. A report is due once in a second of the time with it, with all that is fetched for it.
The script makes its batch as large as leaves it 3,000 steps a second: there a step's cost shows most.

A start is the CPU time of a Python that does nothing, with the instrumentation in front and without, in turn.
What `import tensorflow` takes differs by more than it could cost from one time to the next, so there its own
functions are timed.
"""

from __future__ import annotations

import functools
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import paceline
from benchmarks import plots
from benchmarks.protocols import Bench, Check, Result, Row, at_most, interval, reported

PAIRS_PER_PROCESS = 600
LIMIT, INTERVAL_LIMIT, START_LIMIT, IMPORT_LIMIT = 0.005, 0.01, 0.005, 0.020
FOLDER = Path(paceline.__file__).parent / "instrumentation"
#: Measures times with and without; the order is its argument: ``1`` with, ``0`` without.
SCRIPT = """
import json, sys, time
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.client import session as sessions

tf.disable_v2_behavior()
x = tf.placeholder(tf.float32, [None, 64])
hidden = tf.nn.relu(tf.matmul(x, tf.get_variable("hidden", [64, 64])))
loss = tf.reduce_mean(tf.square(tf.matmul(hidden, tf.get_variable("weights", [64, 1])) - 1.0))
train = tf.train.AdamOptimizer(1e-3).minimize(loss, tf.train.create_global_step())
wrapped = sessions.BaseSession._do_run
plain = wrapped.__wrapped__
cells = [each.cell_contents for each in wrapped.__closure__]
(steps,) = [each for each in cells if type(each).__name__ == "Steps"]
config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
with tf.Session(config=config) as session:
    session.run(tf.global_variables_initializer())

    def made(seconds):
        count, began, used = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - began < seconds:
            for _ in range(25):
                session.run(train, feed)
            count += 25
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - used
        return {"steps": count, "seconds": seconds, "cpu_seconds": cpu_seconds}

    rows, feed = 16, None
    while feed is None or (found["steps"] / found["seconds"] > 3000 and rows < 100_000):
        rows = rows * 5 // 4
        feed = {x: np.ones([rows, 64], np.float32)}
        made(0.2)
        found = made(0.5)
    made(2.0)
    for side in sys.argv[1]:
        began = time.perf_counter()
        if side == "0":
            sessions.BaseSession._do_run = plain
        print(json.dumps({"with": side == "1", **made(0.05)}))
        if side == "0":
            sessions.BaseSession._do_run = wrapped
            # What was made without it is no time between steps, nor between reports.
            passed = time.perf_counter() - began
            steps.due += passed
            steps._since += passed
            steps._thread.ended += passed
"""
#: Says how many seconds the instrumentation takes of ``import tensorflow``. The clock is read around each of
#: 3,500 questions for a module, so it must be a cheap one: that of the process's CPU time took four times as
#: long as the questions themselves. A collection of garbage (90 ms, of all that TensorFlow has made) falls
#: within a question or between two as it happens: there is none.
IMPORT = """
import gc, sys, time
gc.disable()
seconds = 0.0

def timed(function):
    def call(*arguments):
        global seconds
        began = time.perf_counter()
        try:
            return function(*arguments)
        finally:
            seconds += time.perf_counter() - began
    return call

(watch,) = [each for each in sys.meta_path if type(each).__name__ == "ModuleWatch"]
watch.find_spec = timed(watch.find_spec)
watch._actions = {name: [timed(each) for each in actions] for name, actions in watch._actions.items()}
import tensorflow
print(seconds)
"""


def run(bench: Bench) -> list[Check]:
    """Measure processes that train, and starts of processes."""
    processes, starts, imports = (1, 5, 2) if bench.quick else (10, 40, 10)
    bench.plan(processes + starts + imports)
    generator = random.Random(0)
    for number in range(processes):
        order = "".join(generator.choice(("10", "01")) for _ in range(PAIRS_PER_PROCESS))
        bench.repeat(f"process {number}", functools.partial(_process, order))
    for number in range(starts):
        bench.repeat(f"start {number}", functools.partial(_start, is_first=generator.random() < 0.5))
    for number in range(imports):
        bench.repeat(f"import {number}", _import)
    trained = [row for row in bench.rows if row["kind"] == "process"]
    started = [row["with"] - row["without"] for row in bench.rows if row["kind"] == "start"]
    imported = [row["seconds"] for row in bench.rows if row["kind"] == "import"]
    return [
        _cost("throughput that it costs, by the clock", [row["lost_by_clock"] for row in trained]),
        _cost("throughput that it costs, per CPU second", [row["lost_by_cpu"] for row in trained]),
        reported("steps a second without it", [row["per_second"] for row in trained]),
        at_most("CPU seconds of a start without TensorFlow", started, START_LIMIT),
        at_most("seconds of import tensorflow", imported, IMPORT_LIMIT),
    ]


def _cost(name: str, values: Sequence[float]) -> Check:
    """Return the check that the mean is within a limit, and the upper end of its interval within another."""
    value, low, high = interval(values)
    return Check(
        name=name, value=value, low=low, high=high,
        target=f"<= {LIMIT:g}, its upper end <= {INTERVAL_LIMIT:g}",
        holds=value <= LIMIT and high <= INTERVAL_LIMIT,
    )  # fmt: skip


def _environment(folder: str, *, instrumented: bool) -> dict[str, str]:
    """The environment of a replica's command, with the instrumentation in front or without it."""
    own = {
        "PACELINE_REPORT_FILE": os.path.join(folder, "reports.jsonl"), "PACELINE_RUN_DIR": folder,
        "PACELINE_ROLE": "worker", "PACELINE_INDEX": "0", "TF_CPP_MIN_LOG_LEVEL": "3",
    }  # fmt: skip
    others = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**others, **own, **({"PYTHONPATH": str(FOLDER)} if instrumented else {})}


def _output(code: str, *arguments: str) -> tuple[str, int]:
    """Return what an instrumented Python prints, and how many reports it has written."""
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], env=_environment(folder, instrumented=True),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
        )  # fmt: skip
        reports = Path(folder, "reports.jsonl")
        return done.stdout, reports.read_text().count('"steps"') if reports.exists() else 0


def _process(order: str) -> Row:
    """Let a process train, a moment with it and a moment without it in turn."""
    output, reports = _output(SCRIPT, order)
    moments = [json.loads(line) for line in output.splitlines()]

    def rate(per: str, *, instrumented: bool) -> float:
        made = [each for each in moments if each["with"] is instrumented]
        return float(sum(each["steps"] for each in made) / sum(each[per] for each in made))

    lost = {
        per: 1 - rate(per, instrumented=True) / rate(per, instrumented=False)
        for per in ("seconds", "cpu_seconds")
    }
    return {
        "kind": "process",
        "lost_by_clock": lost["seconds"],
        "lost_by_cpu": lost["cpu_seconds"],
        "per_second": rate("seconds", instrumented=False),
        "reports": reports,
    }


def _start(*, is_first: bool) -> Row:
    """Start a process with it and one without it, one after the other."""
    used = {side: _cpu_seconds(instrumented=side) for side in (is_first, not is_first)}
    return {"kind": "start", "with": used[True], "without": used[False]}


def _import() -> Row:
    """Have a process import TensorFlow, and say what that took the instrumentation."""
    return {"kind": "import", "seconds": float(_output(IMPORT)[0])}


def _cpu_seconds(*, instrumented: bool) -> float:
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", ""], env=_environment(folder, instrumented=instrumented), check=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def draw(result: Result, path: Path) -> None:
    """Draw what each process lost."""
    rows = [row for row in result.rows if row["kind"] == "process"]
    groups = {
        "by the clock": [row["lost_by_clock"] * 100 for row in rows],
        "per CPU second": [row["lost_by_cpu"] * 100 for row in rows],
    }
    plots.strips(path, groups, label="% of throughput", title="What the instrumentation costs")
