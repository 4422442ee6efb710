"""What evidence costs, and how soon it tells: the store of an hour of a large job, the answer of ``paceline
why`` from it, and the time from when a fault of a real job begins until it is told of.
"""

from __future__ import annotations

import compileall
import dataclasses
import functools
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import paceline
from benchmarks import large_jobs, plots
from benchmarks.diagnosis import onsets
from benchmarks.diagnosis.bases import Base
from benchmarks.protocols import Bench, Check, Result, Row, at_most, none, percentile_at_most
from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import state_dirs
from paceline.stores import open_store

SECONDS, QUICK_SECONDS = 3600, 600
BATCH_SECONDS = 30
START = 1_700_000_000.0
WHY_SECONDS, WHY_BYTES, BYTES_PER_HOUR = 3.0, 500e6, 10e6
FINDING_SECONDS = 30.0
#: Their links are wide enough for a fast machine: before its fault begins a job is healthy.
BASES = tuple(
    Base(model=model, size=size, seed=seed, speed=4.0)
    for seed in (1, 2)
    for model, size in (("deepfm", "small"), ("wide-deep", "middle"))
)


def run(bench: Bench) -> list[Check]:
    """Fill a store once, then ask it several times; then let faults begin."""
    seconds, repeats, bases = (QUICK_SECONDS, 3, BASES[:1]) if bench.quick else (SECONDS, 10, BASES)
    bench.plan(1 + repeats + len(bases) * len(onsets.ONSETS))
    compileall.compile_dir(Path(paceline.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder:
        home = state_dirs.Home.from_environment({"PACELINE_HOME": folder})
        filled = bench.repeat("fill", functools.partial(_fill, home, seconds))
        if not Path(home.path, "paceline.db").exists():  # kept from an earlier run
            _fill(home, seconds)
        for number in range(repeats):
            bench.repeat(f"why {number}", functools.partial(_why, home))
    for base in bases:
        for onset in onsets.ONSETS:
            bench.repeat(f"{onset.name}, {base.name}", functools.partial(onsets.measure, onset, base))
    return [*_costs(bench.rows, filled["sample_bytes"] * 3600 / seconds), *_findings(bench.rows)]


def _costs(rows: Sequence[Row], sample_bytes_per_hour: float) -> list[Check]:
    asked = [row for row in rows if row["key"].startswith("why")]
    return [
        at_most("samples of 220 replicas at 1 Hz, bytes an hour", [sample_bytes_per_hour], BYTES_PER_HOUR),
        at_most("paceline why, wall seconds", [row["wall_seconds"] for row in asked], WHY_SECONDS),
        at_most("paceline why, CPU seconds", [row["cpu_seconds"] for row in asked], WHY_SECONDS),
        at_most("paceline why, largest memory in bytes", [row["most_bytes"] for row in asked], WHY_BYTES),
    ]


def _findings(rows: Sequence[Row]) -> list[Check]:
    began = [row for row in rows if "onset" in row]
    seconds = [row["seconds"] for row in began if row["seconds"] is not None]
    return [
        percentile_at_most("seconds until a fault is told of, median", seconds, 50, FINDING_SECONDS),
        none("faults that are not told of in 90 s", [row["seconds"] is None for row in began]),
        none("healthy half minutes before with a finding", [bool(row["told_before"]) for row in began]),
    ]


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what was told of each fault, and after how long."""
    yield "| what begins | job | told after | as |\n| --- | --- | --- | --- |"
    for row in rows:
        if "onset" in row:
            told = "not in 90 s" if row["seconds"] is None else f"{row['seconds']:.0f} s"
            job = row["key"].removeprefix(f"{row['onset']}, ")
            yield f"| {row['onset']} | {job} | {told} | {', '.join(row['told'])} |"


def _fill(home: state_dirs.Home, seconds: int) -> dict[str, Any]:
    """Keep a job of so many seconds, as rounds of a supervisor keep it; return what its samples take."""
    with open_store(home.store_url) as store:
        running = large_jobs.begin(store, home, at=START)
    chance = random.Random(0)
    empty = _bytes(home)
    # A store that is closed has no log any more, in which the same bytes stand again.
    with open_store(home.store_url) as store:
        for first in range(0, seconds, BATCH_SECONDS):
            at = [START + second for second in range(first + 1, first + BATCH_SECONDS + 1)]
            store.append_samples(large_jobs.NAME, large_jobs.samples(at, chance))
    with_samples = _bytes(home)
    with open_store(home.store_url) as store:
        for first in range(0, seconds, BATCH_SECONDS):
            reports = large_jobs.reports(
                range(first + 1, first + BATCH_SECONDS + 1), start=START, total=seconds, chance=chance
            )
            store.append_step_reports(large_jobs.NAME, reports)
        ended = dataclasses.replace(running, phase=JobPhase.SUCCEEDED)
        store.save_state(large_jobs.NAME, ended, at=START + seconds + 1)
    return {"sample_bytes": with_samples - empty, "report_bytes": _bytes(home) - with_samples}


def _bytes(home: state_dirs.Home) -> int:
    """Return what the database takes on disk."""
    return sum(path.stat().st_size for path in home.path.glob("paceline.db*"))


def _why(home: state_dirs.Home) -> dict[str, float]:
    program = Path(sys.executable).parent / "paceline"
    environment = {**os.environ, "PACELINE_HOME": str(home.path)}
    start = time.perf_counter()
    with subprocess.Popen(
        [program, "why", large_jobs.NAME], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        said = process.stdout.read().decode()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    if "ps-0" not in said:
        raise RuntimeError(f"the hot server is not found: {said[:500]}")
    return {
        "wall_seconds": wall,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "most_bytes": used.ru_maxrss * 1024.0,
    }


def draw(result: Result, path: Path) -> None:
    """Draw the time and the memory of every answer, as shares of what they may be."""
    asked = [row for row in result.rows if row["key"].startswith("why")]
    groups = {
        "wall time": [row["wall_seconds"] / WHY_SECONDS for row in asked],
        "CPU time": [row["cpu_seconds"] / WHY_SECONDS for row in asked],
        "memory": [row["most_bytes"] / WHY_BYTES for row in asked],
    }
    groups["time to a finding"] = [
        row["seconds"] / FINDING_SECONDS for row in result.rows if row.get("seconds") is not None
    ]
    title = "why of 220 replicas for an hour, and findings of live jobs"
    plots.strips(path, groups, label="of the limit", title=title, limits=dict.fromkeys(groups, 1.0))
