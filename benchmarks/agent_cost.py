"""What the agents cost: the throughput of one training job, its agents at work and paused in turn.

The speed of a shared machine drifts by a tenth within a second, so the two sides lie a quarter of a second
apart, in random order: in one window every agent takes the sample that is due, in the other all are paused
with SIGSTOP (the command that an agent wraps does not notice). A sample is due once a second, so what a
window with a sample loses counts for its share of a second.

Throughput comes from exact counts of examples, by the clock and per CPU second of the job (agents included,
from its cgroup): what the agents take away from the training where CPU is what limits it.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import random
import signal
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import plots, stepped, trials
from benchmarks.protocols import ROOT, Bench, Check, Result, Row, at_most
from paceline.engines.local import machines, processes
from paceline.engines.local.folders import RunFolder
from paceline.model.jobs.runs import Run
from paceline.services.local import jobs

WINDOW_SECONDS = 0.25
#: More than the agents' second: whenever they go on, a sample is due.
PERIOD_SECONDS = 1.3
PAIRS_PER_REPEAT = 20
WARM_UP_SECONDS = 10.0
LIMIT = 0.01


def run(bench: Bench) -> list[Check]:
    """Measure pairs of windows: agents at work, agents paused."""
    repeats = 4 if bench.quick else 60
    bench.plan(repeats)
    data = trials.clicks_data("clicks-quick")
    generator = random.Random(0)
    with trials.service() as api:
        counts = api.home.path / "counts"
        spec = trials.counted("clicks", counts, "--data", str(data), epochs=10_000)
        job = Job(api.submit(spec, source="", base=ROOT), counts)
        job.wait_for_training(api)
        time.sleep(WARM_UP_SECONDS)
        for number in range(repeats):
            orders = [generator.choice([(True, False), (False, True)]) for _ in range(PAIRS_PER_REPEAT)]
            bench.repeat(f"repeat {number}", functools.partial(_repeat, job, orders))
        api.stop(job.run.name)
        api.wait(job.run.name, timeout_seconds=120)
    cores = [row["agents_cpu_cores"] / row["agents"] for row in bench.rows]
    return [
        at_most("throughput that the agents cost, per CPU second", _losses(bench.rows, "cpu"), LIMIT),
        at_most("throughput that the agents cost, by the clock", _losses(bench.rows, "clock"), LIMIT),
        at_most("CPU cores of one agent", cores, LIMIT),
    ]


def _losses(rows: Sequence[Row], by: str) -> list[float]:
    return [
        (1 - row[f"with_sample_by_{by}"] / row[f"paused_by_{by}"])
        * (WINDOW_SECONDS / row["samples_per_window"])
        for row in rows
    ]


@dataclasses.dataclass(frozen=True)
class Window:
    """The rates of all workers over a quarter of a second."""

    examples_per_second: float
    examples_per_cpu_second: float


class Job:
    """The training job that is measured."""

    def __init__(self, run: Run, counts: Path) -> None:
        hierarchy = machines.read().cgroups
        if hierarchy is None:
            raise RuntimeError("this benchmark needs cgroups, so root")
        self.run = run
        self._counts = counts
        self._hierarchy = hierarchy
        self._folder = RunFolder.of(run)
        self.agents: list[int] = []

    def wait_for_training(self, api: jobs.Jobs) -> None:
        """Return as soon as both workers train."""
        trials.wait_for_steps(api, self.run, self._counts)
        found = [processes.agent_pid(self._folder.config(replica, 1)) for replica in self.run.spec.replicas()]
        self.agents = [pid for pid in found if pid is not None]

    def pause(self, paused: bool) -> None:
        """Pause the agents, or have them go on and look at the time: a wait goes on where it was stopped."""
        for pid in self.agents:
            for number in (signal.SIGSTOP,) if paused else (signal.SIGCONT, signal.SIGCHLD):
                os.kill(pid, number)

    def window(self, seconds: float = WINDOW_SECONDS) -> Window:
        """Measure what is trained from now on, for so many seconds."""
        used, start, before = self._cpu_seconds(), time.monotonic(), stepped.read(self._counts)
        time.sleep(seconds)
        used, end, after = self._cpu_seconds() - used, time.monotonic(), stepped.read(self._counts)
        rate = stepped.rate(before, after)
        return Window(rate, rate * (end - start) / used)

    def _cpu_seconds(self) -> float:
        """Return the CPU time of all replicas, their agents included, from the job's cgroup."""
        roots, group = self._hierarchy.roots, self._folder.token
        if self._hierarchy.version == 1:
            return int((roots["cpuacct"] / group / "cpuacct.usage").read_text()) / 1e9
        lines = (roots["cpu"] / group / "cpu.stat").read_text().splitlines()
        return int(dict(line.split() for line in lines)["usage_usec"]) / 1e6

    def agents_cpu_seconds(self) -> float:
        """Return the CPU time of the agents alone, in the kernel's ticks."""
        ticks = 0
        for pid in self.agents:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def samples(self) -> int:
        """Return how many samples the agents have written so far."""
        spools = [self._folder.files(replica, 1).spool for replica in self.run.spec.replicas()]
        return sum(Path(spool).read_text().count('"type": "sample"') for spool in spools)


def _repeat(job: Job, orders: Sequence[tuple[bool, bool]]) -> Row:
    """Return throughput with the agents at work and with them paused, the means of windows in pairs."""
    windows: dict[bool, list[Window]] = {True: [], False: []}
    job.pause(True)
    samples, seconds = job.samples(), job.agents_cpu_seconds()
    try:
        for order in orders:
            time.sleep(PERIOD_SECONDS - len(order) * WINDOW_SECONDS)
            for at_work in order:
                job.pause(not at_work)
                windows[at_work].append(job.window())
            job.pause(True)
        samples, seconds = job.samples() - samples, job.agents_cpu_seconds() - seconds
    finally:
        job.pause(False)
    row: Row = {
        "agents": len(job.agents),
        "samples_per_window": samples / len(job.agents) / len(orders),
        "agents_cpu_cores": seconds / (samples / len(job.agents)),
    }
    for side, chosen in (("with_sample", windows[True]), ("paused", windows[False])):
        row[f"{side}_by_clock"] = statistics.fmean(window.examples_per_second for window in chosen)
        row[f"{side}_by_cpu"] = statistics.fmean(window.examples_per_cpu_second for window in chosen)
    return row


def draw(result: Result, path: Path) -> None:
    """Draw the loss of each repeat."""
    groups = {
        "per CPU second": [100 * loss for loss in _losses(result.rows, "cpu")],
        "by the clock": [100 * loss for loss in _losses(result.rows, "clock")],
    }
    title = "Throughput lost to the agents, by repeat (dashed: the limit of the mean)"
    plots.strips(path, groups, label="%", title=title, limits=dict.fromkeys(groups, 100 * LIMIT))
