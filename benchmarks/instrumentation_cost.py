"""What the instrumentation costs a script that nobody changed: one process, with it and without it in turn.

The speed of a shared machine drifts, so the two sides lie a second apart, in random order, in one process and
one session: the method of TensorFlow that is wrapped is put back for the seconds without. A report is due
once a second, so each second with it has one, with all that is fetched for it. The script makes about 3,000
steps a second where the machine is not busy, which is where a step's cost shows most.

Start-up is the CPU time of a Python that does nothing, and of one that imports TensorFlow, each with the
instrumentation in front and without, in turn.
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
from benchmarks.protocols import Bench, Check, Result, Row, at_most, reported

PAIRS_PER_PROCESS = 30
LIMIT, START_LIMIT, IMPORT_LIMIT = 0.005, 0.005, 0.020
FOLDER = Path(paceline.__file__).parent / "instrumentation"
#: Measures seconds with and without; the order is its argument: ``1`` with, ``0`` without.
SCRIPT = """
import json, sys, time
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.client import session as sessions

tf.disable_v2_behavior()
x = tf.placeholder(tf.float32, [None, 8])
weights = tf.get_variable("weights", [8, 1])
loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))
train = tf.train.AdamOptimizer(1e-3).minimize(loss, tf.train.create_global_step())
wrapped = sessions.BaseSession._do_run
plain = wrapped.__wrapped__
feed = {x: np.ones([16, 8], np.float32)}
config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
with tf.Session(config=config) as session:
    session.run(tf.global_variables_initializer())
    until = time.perf_counter() + 5.0
    while time.perf_counter() < until:
        session.run(train, feed)
    for side in sys.argv[1]:
        sessions.BaseSession._do_run = wrapped if side == "1" else plain
        steps, began, used = 0, time.perf_counter(), time.process_time()
        while True:
            for _ in range(50):
                session.run(train, feed)
            steps += 50
            if time.perf_counter() - began >= 1.0:
                break
        seconds, cpu = time.perf_counter() - began, time.process_time() - used
        print(json.dumps({"with": side == "1", "per_second": steps / seconds, "per_cpu_second": steps / cpu}))
"""


def run(bench: Bench) -> list[Check]:
    """Measure processes that train, and starts of processes."""
    processes, starts, imports = (1, 5, 2) if bench.quick else (10, 40, 15)
    bench.plan(processes + starts + imports)
    generator = random.Random(0)
    for number in range(processes):
        order = "".join(generator.choice(("10", "01")) for _ in range(PAIRS_PER_PROCESS))
        bench.repeat(f"process {number}", functools.partial(_process, order))
    for kind, count, code in (("start", starts, ""), ("import", imports, "import tensorflow")):
        for number in range(count):
            is_first = generator.random() < 0.5
            bench.repeat(f"{kind} {number}", functools.partial(_start, kind, code, is_first))
    trained = [row for row in bench.rows if row["kind"] == "process"]
    return [
        at_most("throughput that it costs, by the clock", [row["lost_by_clock"] for row in trained], LIMIT),
        at_most("throughput that it costs, per CPU second", [row["lost_by_cpu"] for row in trained], LIMIT),
        reported("steps a second without it", [row["per_second"] for row in trained]),
        at_most("CPU seconds of a start without TensorFlow", _seconds(bench.rows, "start"), START_LIMIT),
        at_most("CPU seconds of import tensorflow", _seconds(bench.rows, "import"), IMPORT_LIMIT),
    ]


def _seconds(rows: Sequence[Row], kind: str) -> list[float]:
    return [row["with"] - row["without"] for row in rows if row["kind"] == kind]


def _environment(folder: str, *, instrumented: bool) -> dict[str, str]:
    """The environment of a replica's command, with the instrumentation in front or without it."""
    own = {
        "PACELINE_REPORT_FILE": os.path.join(folder, "reports.jsonl"), "PACELINE_RUN_DIR": folder,
        "PACELINE_ROLE": "worker", "PACELINE_INDEX": "0", "TF_CPP_MIN_LOG_LEVEL": "3",
    }  # fmt: skip
    others = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**others, **own, **({"PYTHONPATH": str(FOLDER)} if instrumented else {})}


def _process(order: str) -> Row:
    """Let a process train, a second with it and a second without it in turn."""
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, order], env=_environment(folder, instrumented=True),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
        )  # fmt: skip
        reports = Path(folder, "reports.jsonl").read_text().count('"step"')
    windows = [json.loads(line) for line in done.stdout.splitlines()]
    rates = {
        (name, side): sum(each[name] for each in windows if each["with"] is side) / PAIRS_PER_PROCESS
        for name in ("per_second", "per_cpu_second")
        for side in (True, False)
    }
    return {
        "kind": "process",
        "lost_by_clock": 1 - rates["per_second", True] / rates["per_second", False],
        "lost_by_cpu": 1 - rates["per_cpu_second", True] / rates["per_cpu_second", False],
        "per_second": rates["per_second", False],
        "reports": reports,
    }


def _start(kind: str, code: str, is_first: bool) -> Row:
    """Start a process with it and one without it, one after the other."""
    used = {side: _cpu_seconds(code, instrumented=side) for side in (is_first, not is_first)}
    return {"kind": kind, "with": used[True], "without": used[False]}


def _cpu_seconds(code: str, *, instrumented: bool) -> float:
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", code], env=_environment(folder, instrumented=instrumented),
            stderr=subprocess.DEVNULL, check=True,
        )  # fmt: skip
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
