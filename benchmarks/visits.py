"""What a visit to a parameter server costs it and the trainer, and what an idle server costs.

Bare TensorFlow, without any code of Paceline: what `modelling.calibrations` assumes before it has measured.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks import plots
from benchmarks.protocols import ROOT, Bench, Check, Result, Row, reported
from paceline.engines.local import ports
from paceline.modelling.calibrations import ASSUMED

REPEATS = 3
SECONDS = 8.0
SERVERS, VARIABLES = (1, 4), (1, 6)
#: Steps one after the other, and some 45 a second: a server that has just worked has what it needs at hand.
PACES_SECONDS = (0.0, 0.02)
_IDLE_SECONDS = 5.0


def run(bench: Bench) -> list[Check]:
    """Visit servers that hold some variables, without a rest and with; with ``--quick`` once."""
    ways = list(itertools.product(range(1 if bench.quick else REPEATS), SERVERS, VARIABLES, PACES_SECONDS))
    bench.plan(len(ways))
    for number, servers, variables, pace in ways:
        key = f"{servers} servers, {variables} variables each, rests of {pace:g} s ({number + 1})"
        bench.repeat(key, functools.partial(_measure, servers, variables, pace))
    return list(_checks(bench.rows))


def _measure(servers: int, variables: int, pace_seconds: float) -> Row:
    with contextlib.ExitStack() as started:
        chosen = ports.choose(servers + 1, frozenset(), random.Random())
        addresses = [f"127.0.0.1:{port}" for port in chosen]
        cluster = json.dumps({"ps": addresses[:servers], "worker": addresses[servers:]})
        processes = [started.enter_context(_process("ps", cluster, str(index))) for index in range(servers)]
        numbers = (str(variables), str(pace_seconds), str(SECONDS))
        trainer = started.enter_context(_process("trainer", cluster, *numbers))
        before, begun = _said(trainer), _cpu_seconds(processes)
        after, ended = _said(trainer), _cpu_seconds(processes)
        time.sleep(_IDLE_SECONDS)
        idle = _cpu_seconds(processes)
    return {
        "servers": servers,
        "variables": variables,
        "pace_seconds": pace_seconds,
        "steps": after["steps"],
        "trainer_step_seconds": (after["cpu_seconds"] - before["cpu_seconds"]) / after["steps"],
        "server_visit_seconds": (ended - begun) / after["steps"] / servers,
        "idle_cores": (idle - ended) / _IDLE_SECONDS / servers,
    }


@contextlib.contextmanager
def _process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.visited", *arguments],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _said(trainer: subprocess.Popen[str]) -> dict[str, Any]:
    assert trainer.stdout is not None
    line = trainer.stdout.readline()
    if not line:
        raise RuntimeError("the trainer has ended: run python -m benchmarks.visited by hand to see why")
    return dict(json.loads(line))


def _cpu_seconds(processes: Sequence[subprocess.Popen[str]]) -> float:
    times = [psutil.Process(each.pid).cpu_times() for each in processes]
    return sum(each.user + each.system for each in times)


def _checks(rows: Sequence[Row]) -> Iterator[Check]:
    yield _assumed("server_visit_seconds", [row["server_visit_seconds"] for row in rows])
    yield _assumed("trainer_visit_seconds", _trainer_visits(rows))
    idle = [row["idle_cores"] for row in rows]
    yield reported("cores of an idle server", idle)


def _trainer_visits(rows: Sequence[Row]) -> list[float]:
    """Return what one more server costs a trainer in a step, by pairs of runs that differ in nothing else."""
    few, many = ([row for row in rows if row["servers"] == count] for count in SERVERS)
    return [
        (more["trainer_step_seconds"] - less["trainer_step_seconds"]) / (SERVERS[1] - SERVERS[0])
        for less, more in zip(_in_order(few), _in_order(many), strict=True)
    ]


def _in_order(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["variables"], row["pace_seconds"]))


def _assumed(name: str, seconds: Sequence[float]) -> Check:
    """Return the check that what is assumed of a cost is what is measured: within its factor, on average."""
    assumed, value = ASSUMED[name], statistics.geometric_mean(seconds)
    lowest, highest = assumed.median / assumed.factor, assumed.median * assumed.factor
    return Check(
        name=f"{name.removesuffix('_seconds').replace('_', ' ')}, seconds of a core", value=value,
        low=min(seconds), high=max(seconds), target=f"{lowest:.2g} to {highest:.2g}",
        holds=lowest <= value <= highest,
    )  # fmt: skip


def draw(result: Result, path: Path) -> None:
    """Draw what visits cost a server."""
    groups: dict[str, list[float]] = {}
    for row in result.rows:
        name = f"{row['variables']} variables, rests of {row['pace_seconds']:g} s"
        groups.setdefault(name, []).append(1000 * row["server_visit_seconds"])
    plots.strips(path, groups, label="ms of a server's core for a visit", title="A visit, bare TensorFlow")
