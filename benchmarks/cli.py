"""The command line is quick: help in under 100 ms of CPU, a list of 1,000 runs in under half a second."""

from __future__ import annotations

import functools
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import plots
from benchmarks.protocols import Bench, Check, Result, at_most
from paceline.control import states
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import Role
from paceline.services.local import state_dirs
from paceline.stores import open_store

HELP_CPU_SECONDS = 0.1
LIST_SECONDS = 0.5
RUNS = 1000


def run(bench: Bench) -> list[Check]:
    """Time both commands, in turn."""
    repeats = 5 if bench.quick else 30
    bench.plan(2 * repeats)
    with tempfile.TemporaryDirectory() as folder:
        home = state_dirs.Home.from_environment({"PACELINE_HOME": folder})
        _fill(home)
        _time(home, "list")
        for repeat in range(repeats):
            for command in ("--help", "list"):
                bench.repeat(f"{command} {repeat}", functools.partial(_time, home, command))
    cpu = [row["cpu_seconds"] for row in bench.rows if row["command"] == "--help"]
    wall = [row["wall_seconds"] for row in bench.rows if row["command"] == "list"]
    return [
        at_most("paceline --help, CPU seconds", cpu, HELP_CPU_SECONDS),
        at_most(f"paceline list with {RUNS} runs, wall seconds", wall, LIST_SECONDS),
    ]


def _fill(home: state_dirs.Home) -> None:
    roles = (RoleSpec(role=Role.PS, replicas=2), RoleSpec(role=Role.WORKER, replicas=4))
    with open_store(home.store_url) as store:
        for number in range(RUNS):
            spec = JobSpec(name=f"run-{number}", command=("train",), roles=roles, labels={"team": "ads"})
            run = Run(
                name=spec.name, spec=spec, source="x" * 2000, engine="local",
                directory=str(home.runs / spec.name), submitted_at=1e9 + number, phase=JobPhase.SUCCEEDED,
            )  # fmt: skip
            store.create_run(run, states.initial(spec))


def _time(home: state_dirs.Home, command: str) -> dict[str, float | str]:
    program = Path(sys.executable).parent / "paceline"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    environment = {**os.environ, "PACELINE_HOME": str(home.path)}
    done = subprocess.run([program, command], env=environment, capture_output=True, text=True, check=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if command == "list" and done.stdout.count("run-") < RUNS:
        raise RuntimeError("the list does not hold every run")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"command": command, "cpu_seconds": cpu, "wall_seconds": wall}


def draw(result: Result, path: Path) -> None:
    """Draw every repeat beside its limit."""
    groups = {
        "--help, CPU": [row["cpu_seconds"] for row in result.rows if row["command"] == "--help"],
        "list, wall": [row["wall_seconds"] for row in result.rows if row["command"] == "list"],
    }
    limits = {"--help, CPU": HELP_CPU_SECONDS, "list, wall": LIST_SECONDS}
    plots.strips(path, groups, label="seconds", title="Start-up (dashed: the limit)", limits=limits)
