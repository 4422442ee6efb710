"""What the agents cost: the throughput of one training job, its agents running and paused in turn.

Both sides are measured within one job, seconds apart and in random order, so that a drift of the machine hits
both. An agent is paused with SIGSTOP; the command that it wraps does not notice.

Throughput is taken twice. By the clock it swings by a tenth within seconds on a shared machine, whoever else
computes there. Per CPU second of the job (agents included, from its cgroup) it says what the agents take away
from the training where CPU is what limits it, and swings much less.
"""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import plots, trials
from benchmarks.protocols import KEPT, ROOT, Bench, Check, Result, Row, at_most
from examples.clicks import generate
from paceline.engines.local import cgroups, machines, processes
from paceline.model.runs import Run
from paceline.services import jobs

WINDOW_SECONDS = 3.0
#: Scripts report about once a second: so much later, every report that touches a window is written.
REPORT_SECONDS = 1.5
WARM_UP_SECONDS = 10.0
LIMIT = 0.01


def run(bench: Bench) -> list[Check]:
    """Measure pairs of windows: agents running, agents paused."""
    pairs = 10 if bench.quick else 60
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
    return [
        at_most(
            "throughput that the agents cost, per CPU second",
            _losses(bench.rows, "cpu"),
            LIMIT,
            statistic=middle,
        ),
        at_most(
            "throughput that the agents cost, by the clock",
            _losses(bench.rows, "clock"),
            LIMIT,
            statistic=middle,
        ),
        at_most("CPU cores of one agent", [row["agent_cpu_cores"] / len(pids) for row in bench.rows], LIMIT),
    ]


def _losses(rows: Sequence[Row], by: str) -> list[float]:
    return [1 - row[f"with_agent_by_{by}"] / row[f"without_agent_by_{by}"] for row in rows]


def middle(values: Any, axis: int = -1) -> Any:
    """Return the mean of the middle 80 %: windows in which something else took the machine do not count."""
    ordered = np.sort(values, axis=axis)
    cut = ordered.shape[axis] // 10
    return np.take(ordered, range(cut, ordered.shape[axis] - cut), axis=axis).mean(axis=axis)


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
    """Return throughput with the agents running and with them paused, a window of each."""
    windows: dict[bool, tuple[float, float, float]] = {}
    agent_cores = 0.0
    for running in order:
        for pid in pids:
            os.kill(pid, signal.SIGCONT if running else signal.SIGSTOP)
        try:
            agents, job, start = _cpu_seconds(pids), _job_cpu_seconds(training), time.time()
            time.sleep(WINDOW_SECONDS)
            end, used = time.time(), _job_cpu_seconds(training) - job
            if running:
                agent_cores = (_cpu_seconds(pids) - agents) / (end - start)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        windows[running] = (start, end, used)
    time.sleep(REPORT_SECONDS)
    row: dict[str, Any] = {"agent_cpu_cores": agent_cores}
    for running, (start, end, used) in windows.items():
        examples = _examples(training, start, end)
        side = "with_agent" if running else "without_agent"
        row |= {f"{side}_by_clock": examples / (end - start), f"{side}_by_cpu": examples / used}
    return row


def _examples(training: Run, start: float, end: float) -> float:
    """Return the examples of all workers within a window; a report that it cuts counts for its share."""
    total = 0.0
    for replica in training.spec.replicas():
        for report in _reports(Path(jobs.folder_of(training).files(replica, 1).reports)):
            since, until = report["at"] - report["interval_seconds"], report["at"]
            inside = min(end, until) - max(start, since)
            total += report["examples"] * max(0.0, inside) / report["interval_seconds"]
    return total


@functools.cache
def _hierarchy() -> cgroups.Hierarchy | None:
    """Return where cgroups are; found once, because looking makes and removes some."""
    return machines.read().cgroups


def _job_cpu_seconds(training: Run) -> float:
    """Return the CPU time of all replicas of the job, their agents included, from its cgroup."""
    hierarchy = _hierarchy()
    if hierarchy is None:
        raise RuntimeError("this benchmark needs cgroups, so root")
    group = jobs.folder_of(training).token
    if hierarchy.version == 1:
        return int((hierarchy.roots["cpuacct"] / group / "cpuacct.usage").read_text()) / 1e9
    fields = dict(
        line.split() for line in (hierarchy.roots["cpu"] / group / "cpu.stat").read_text().splitlines()
    )
    return int(fields["usage_usec"]) / 1e6


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
    groups = {
        "per CPU second": [100 * loss for loss in _losses(result.rows, "cpu")],
        "by the clock": [100 * loss for loss in _losses(result.rows, "clock")],
    }
    title = "Throughput lost to the agents, by pair (dashed: the limit of the mean)"
    plots.strips(path, groups, label="%", title=title, limits=dict.fromkeys(groups, 100 * LIMIT))
