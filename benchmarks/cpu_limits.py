"""What CPU limits do to training: threads by the limit or by the machine, own cores or shares, oneDNN.

Two jobs that differ in one thing are up at the same time, and one is paused while the other trains: windows
of two seconds lie beside one another, in random order, so that the drift of a shared machine does not matter.
Examples are counted exactly by the training, context switches by the kernel.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import plots, rungs, stepped, trials
from benchmarks.protocols import ROOT, Bench, Check, Result, Row, interval
from paceline.engines.local import cgroups, machines, processes
from paceline.engines.local.folders import RunFolder
from paceline.model.jobs.job_specs import CpuPolicy, JobSpec
from paceline.model.jobs.runs import Run
from paceline.model.roles import Role
from paceline.services.local import jobs

DATA, BATCH = "clicks-small", 512
SPARSE = "1 sparse optimizer"
SETTLE_SECONDS, WINDOW_SECONDS = 0.5, 2.0
WARM_UP_SECONDS = 3.0
LESS_SWITCHES, FASTER = 0.40, 0.05
NEIGHBOURS = 2
BUSY = "while True: pass"


class Side(NamedTuple):
    """A job under a limit of one core for each replica; threads of None: as many as the limit has."""

    rung: str = rungs.BEST
    threads: int | None = None
    policy: CpuPolicy = CpuPolicy.SHARED
    one_process: bool = False
    environment: Mapping[str, str] = {}


class Comparison(NamedTuple):
    """One side over another, maybe beside other busy processes."""

    name: str
    one: Side
    other: Side
    noisy: bool = False


def _comparisons() -> Iterator[Comparison]:
    """Threads: those of this machine, and those of machines with as many cores as clusters have."""
    for rung in (SPARSE, rungs.BEST):
        for threads in (rungs.CORES, 24, 48):
            yield Comparison(
                f"{rung}: threads = limit over {threads} threads", Side(rung), Side(rung, threads)
            )
    own = Side(policy=CpuPolicy.EXCLUSIVE, one_process=True)
    yield Comparison("own core over shares", own, Side(one_process=True), noisy=True)
    off = Side(environment={"TF_ENABLE_ONEDNN_OPTS": "0"})
    yield Comparison("oneDNN over none", Side(environment={"TF_ENABLE_ONEDNN_OPTS": "1"}), off)


def run(bench: Bench) -> list[Check]:
    """Measure all comparisons, bout by bout."""
    comparisons = list(_comparisons())
    if bench.quick:
        quick = Side(rungs.BEST, 24)
        comparisons = [each for each in comparisons if each.noisy or each.other == quick]
    bouts, pairs = (1, 5) if bench.quick else (2, 15)
    bench.plan(bouts * len(comparisons))
    for number in range(bouts):
        for each in comparisons:
            bench.repeat(f"{each.name} {number}", functools.partial(_bout, each, pairs, number))
    return [check for each in comparisons for check in _checks(each, bench.rows)]


def _checks(comparison: Comparison, rows: Sequence[Row]) -> Iterator[Check]:
    own = [row for row in rows if row["comparison"] == comparison.name]
    faster = [ratio - 1 for row in own for ratio in row["speed_ratios"]]
    fewer = [1 - ratio for row in own for ratio in row["switch_ratios"]]
    # What is promised is promised of all that the library does; of a model without it there is no target.
    threads = comparison.one.threads != comparison.other.threads and comparison.one.rung == rungs.BEST
    yield _check(f"{comparison.name}: faster by", faster, FASTER if threads else None)
    yield _check(f"{comparison.name}: fewer context switches by", fewer, LESS_SWITCHES if threads else None)


def _check(name: str, values: Sequence[float], least: float | None) -> Check:
    value, low, high = interval(values)
    target = "whatever it is" if least is None else f">= {least:g}"
    return Check(
        name=name, value=value, low=low, high=high, target=target, holds=least is None or low >= least
    )


def _bout(comparison: Comparison, pairs: int, seed: int) -> Row:
    """Return the ratios of windows in pairs: speed, and context switches in a second."""
    generator = random.Random(seed)
    with contextlib.ExitStack() as stack:
        api = stack.enter_context(trials.service())
        sides = [
            stack.enter_context(_training(api, side, api.home.path / f"counts-{number}"))
            for number, side in enumerate((comparison.one, comparison.other))
        ]
        neighbours = stack.enter_context(_neighbours()) if comparison.noisy else []
        found: list[list[Window]] = [[], []]
        for _ in range(pairs):
            for number in generator.sample(range(2), 2):
                found[number].append(sides[number].window(neighbours))
    return {
        "comparison": comparison.name,
        "examples_per_second": [[one.examples for one in side] for side in found],
        "switches_per_second": [[one.switches for one in side] for side in found],
        "speed_ratios": [a.examples / b.examples for a, b in zip(*found, strict=True)],
        "switch_ratios": [a.switches / b.switches for a, b in zip(*found, strict=True)],
    }


class Window(NamedTuple):
    """What happened in a second of a window."""

    examples: float
    switches: float


@contextlib.contextmanager
def _training(api: jobs.Jobs, side: Side, counts: Path) -> Iterator[Job]:
    """Yield a job that trains, paused."""
    run = api.submit(_spec(side, counts), source="", base=ROOT)
    job = Job(run, counts)
    try:
        trials.wait_for_steps(api, run, counts)
        time.sleep(WARM_UP_SECONDS)
        job.pause()
        yield job
    finally:
        job.go_on()
        api.stop(run.name)
        api.wait(run.name, timeout_seconds=120)


def _spec(side: Side, counts: Path) -> JobSpec:
    name = rungs.LIMIT if side.one_process else side.rung
    made = rungs.spec(name, DATA, BATCH, counts, epochs=10_000, checkpoint={"every_seconds": 100_000})
    roles = tuple(
        dataclasses.replace(
            role,
            replicas=1,
            cpu_cores=1.0,
            cpu_policy=side.policy,
            threads=side.threads,
            environment={**role.environment, **side.environment},
        )
        for role in made.roles
        if role.role in (Role.PS, Role.WORKER)
    )
    # Ended at once: the last checkpoint is not needed.
    return dataclasses.replace(made, roles=roles, termination_grace_seconds=1.0)


class Job:
    """A job that is measured by windows; it is paused between them."""

    def __init__(self, run: Run, counts: Path) -> None:
        hierarchy = machines.read().cgroups
        if hierarchy is None:
            raise RuntimeError("this benchmark needs cgroups, so root")
        self._run = run
        self._counts = counts
        self._hierarchy = hierarchy
        self._folder = RunFolder.of(run)

    def _pids(self) -> set[int]:
        return self._hierarchy.pids(self._folder.token)

    def pause(self) -> None:
        """Stop every process of every replica."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let them go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def window(self, neighbours: Sequence[int]) -> Window:
        """Measure a window; neighbours keep off the cores that are this job's own."""
        self._keep_off(neighbours)
        self.go_on()
        time.sleep(SETTLE_SECONDS)
        start, before, switches = time.monotonic(), stepped.read(self._counts), self._switches()
        time.sleep(WINDOW_SECONDS)
        after, switches = stepped.read(self._counts), self._switches() - switches
        seconds = time.monotonic() - start
        self.pause()
        return Window(stepped.rate(before, after), switches / seconds)

    def _keep_off(self, neighbours: Sequence[int]) -> None:
        every = os.sched_getaffinity(0)
        worker = next(each for each in self._run.spec.replicas() if each.role is Role.WORKER)
        agent = processes.agent_pid(self._folder.config(worker, 1))
        own = os.sched_getaffinity(agent) if agent is not None else every
        for pid in neighbours:
            os.sched_setaffinity(pid, every - own or every)

    def _switches(self) -> int:
        """Return the context switches of all threads so far, voluntary and not."""
        found = 0
        for pid in self._pids():
            for status in Path(f"/proc/{pid}/task").glob("*/status"):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    lines = status.read_text().splitlines()
                    found += sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
        return found


@contextlib.contextmanager
def _neighbours() -> Iterator[list[int]]:
    """Yield busy processes in a cgroup beside those of jobs."""
    hierarchy = machines.read().cgroups
    assert hierarchy is not None, "a job was made of it"
    group = f"neighbours-{os.getpid()}"
    hierarchy.create(group, cgroups.CgroupLimits())
    started = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(NEIGHBOURS)]
    try:
        for process in started:
            for folder in hierarchy.folders(group):
                (folder / "cgroup.procs").write_text(str(process.pid))
        yield [process.pid for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
        hierarchy.remove(group)


def draw(result: Result, path: Path) -> None:
    """Draw the gain in speed of every pair of windows."""
    groups: dict[str, list[float]] = {}
    for row in result.rows:
        gains = [100 * (ratio - 1) for ratio in row["speed_ratios"]]
        groups.setdefault(row["comparison"], []).extend(gains)
    limits = {name: 100 * FASTER for name in groups if "threads" in name and rungs.BEST in name}
    title = "Speed under a CPU limit of one core (dashed: at least)"
    plots.strips(path, groups, label="% faster", title=title, limits=limits)
