"""What the agents cost: the throughput of one training job, its agents running and paused in turn.

Both sides are measured within one job, seconds apart and in random order, so that a drift of the machine hits
both. An agent is paused with SIGSTOP; the command that it wraps does not notice.
"""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import plots, trials
from benchmarks.protocols import KEPT, ROOT, Bench, Check, Result, at_most
from examples.clicks import generate
from paceline.engines.local import processes
from paceline.model.runs import Run
from paceline.services import jobs

WINDOW_SECONDS = 6.0
SETTLE_SECONDS = 0.3
WARM_UP_SECONDS = 10.0
LIMIT = 0.01


def run(bench: Bench) -> list[Check]:
    """Measure pairs of windows: agents running, agents paused."""
    pairs = 6 if bench.quick else 60
    bench.plan(pairs)
    data = KEPT / "clicks-quick"
    generate.generate(data, generate.Parameters(train_rows=300_000, evaluation_rows=20_000))
    spec = trials.example("clicks", "--data", str(data), epochs=1000)
    generator = random.Random(0)
    with trials.service() as api:
        training = api.submit(spec, source="", base=ROOT)
        pids = _wait_for_training(api, training)
        time.sleep(WARM_UP_SECONDS)
        for pair in range(pairs):
            order = generator.sample([True, False], 2)
            bench.repeat(f"pair {pair}", functools.partial(_pair, training, pids, order))
        api.stop(training.name)
        api.wait(training.name, timeout_seconds=120)
    losses = [1 - row["with_agent"] / row["without_agent"] for row in bench.rows]
    cores = [row["agent_cpu_cores"] / len(pids) for row in bench.rows]
    return [
        at_most("share of throughput that the agents cost", losses, LIMIT),
        at_most("CPU cores of one agent", cores, LIMIT),
    ]


def _wait_for_training(api: jobs.Jobs, training: Run) -> list[int]:
    """Return the agents' processes as soon as both workers train."""
    deadline = time.monotonic() + 180
    while len(api.store.latest_step_reports(training.name)) < 2:
        if time.monotonic() > deadline or api.get(training.name).phase.is_final:
            raise RuntimeError(f"training did not start: {api.get(training.name).message}")
        time.sleep(0.5)
    folder = jobs.folder_of(training)
    found = [processes.agent_pid(folder.config(replica, 1)) for replica in training.spec.replicas()]
    return [pid for pid in found if pid is not None]


def _pair(training: Run, pids: list[int], order: list[bool]) -> dict[str, Any]:
    """Return examples per second with the agents running and with them paused, a window of each."""
    rates: dict[bool, float] = {}
    agent_seconds = 0.0
    for running in order:
        for pid in pids:
            os.kill(pid, signal.SIGCONT if running else signal.SIGSTOP)
        try:
            before, start = _cpu_seconds(pids), time.time()
            time.sleep(WINDOW_SECONDS)
            end = time.time()
            if running:
                agent_seconds = (_cpu_seconds(pids) - before) / (end - start)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        rates[running] = _examples_per_second(training, start + SETTLE_SECONDS, end)
    return {"with_agent": rates[True], "without_agent": rates[False], "agent_cpu_cores": agent_seconds}


def _examples_per_second(training: Run, start: float, end: float) -> float:
    """Return the throughput of all workers over the step reports that lie wholly within a window."""
    total = 0.0
    for replica in training.spec.replicas():
        path = Path(jobs.folder_of(training).files(replica, 1).reports)
        inside = [r for r in _reports(path) if start <= r["at"] - r["interval_seconds"] and r["at"] <= end]
        seconds = sum(report["interval_seconds"] for report in inside)
        if seconds:
            total += sum(report["examples"] for report in inside) / seconds
    return total


def _reports(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        for line in path.read_text().splitlines()[-100:]:
            report = json.loads(line)
            if report.get("type") == "step" and report.get("interval_seconds"):
                yield report


def _cpu_seconds(pids: list[int]) -> float:
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def draw(result: Result, path: Path) -> None:
    """Draw the loss of each pair."""
    losses = [100 * (1 - row["with_agent"] / row["without_agent"]) for row in result.rows]
    title = "Throughput lost to the agents, by pair (dashed: the limit of the mean)"
    plots.strips(path, {"loss": losses}, label="%", title=title, limits={"loss": 100 * LIMIT})
