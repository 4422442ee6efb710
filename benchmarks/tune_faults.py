"""Searches and experiments killed at random moments: they go on, repeat nothing, leave nothing behind.

Their trials are real jobs of small Python trainers on an emulated host: many of them fit into minutes.
"""

from __future__ import annotations

import functools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from support import leftovers

from benchmarks import plots
from benchmarks.protocols import Bench, Check, Result, Row, none
from paceline.engines.local.folders import RunFolder
from paceline.errors import NotFound
from paceline.model.jobs.runs import Run
from paceline.services.local import state_dirs
from paceline.stores import Store, open_store

TUNE, EXPERIMENT = "tune", "experiment"
#: Kills in each study: enough that it dies in every part of it.
KILLS = 5
_LEAST_SECONDS, _MOST_SECONDS = 0.3, 12.0
_PATIENCE_SECONDS = 600.0
_SCRIPT = """\
import json, os, time

training = json.loads(os.environ["PACELINE_TRAINING"])
speed = 20_000 * (2 if training.get("fused_tables", True) else 1)
step = 0
while True:
    time.sleep(0.1)
    step += 10
    report = {
        "type": "step", "at": time.time(), "interval_seconds": 0.1, "step": step, "steps": 10,
        "examples": speed // 10, "loss": 0.4, "input_wait_seconds": 0.0,
    }
    with open(os.environ["PACELINE_REPORT_FILE"], "a") as file:
        file.write(json.dumps(report) + "\\n")
"""
_JOB = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: paced}}
spec:
  termination_grace: 1s
  command: [{python}, train.py]
  hosts: [{{name: host-0, bandwidth: 1G}}]
  roles:
    ps: {{command: [sleep, "600"]}}
    worker: {{replicas: 2, restart: {{when: never}}}}
  training: {{fused_tables: false, batch_size: 200}}
"""
_EXPERIMENT = """\
apiVersion: paceline.dev/v1alpha1
kind: Experiment
metadata: {name: fusing}
spec:
  job: job.yaml
  variants: {now: {}, fused: {training.fused_tables: true}}
  repeats: 2
  seconds: 1
"""


def run(bench: Bench) -> list[Check]:
    """Kill each kind of study several times over, and let it end."""
    studies = 1 if bench.quick else 3
    bench.plan(2 * studies)
    for number in range(studies):
        for kind in (TUNE, EXPERIMENT):
            bench.repeat(f"{kind} {number}", functools.partial(_killed, kind, number))
    return list(_checks(bench.rows))


def _killed(kind: str, seed: int) -> dict[str, Any]:
    """Kill a study at random moments, then let it end; return what became of it."""
    chance = random.Random(f"{kind} {seed}")
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as name:
        folder = Path(name)
        (folder / "train.py").write_text(_SCRIPT)
        (folder / "job.yaml").write_text(_JOB.format(python=sys.executable))
        (folder / "experiment.yaml").write_text(_EXPERIMENT)
        home = state_dirs.Home.from_environment({"PACELINE_HOME": str(folder / "home")})
        repeated, deaths = 0, 0
        known: list[Any] = []
        while deaths < KILLS:
            process = _start(kind, folder, home)
            try:
                process.wait(chance.uniform(_LEAST_SECONDS, _MOST_SECONDS))
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
            # One that was done already is begun anew; a kill that came too late counts as well.
            deaths += 1
            now = _finished(kind, home)
            repeated += now[: len(known)] != known
            known = now
        last = _start(kind, folder, home)
        code = last.wait(_PATIENCE_SECONDS)
        now = _finished(kind, home)
        repeated += now[: len(known)] != known
        return {
            "kind": kind,
            "kills": deaths,
            "exit_code": code,
            "finished": len(now),
            "repeated": repeated,
            "left": _left(home),
        }


def _start(kind: str, folder: Path, home: state_dirs.Home) -> subprocess.Popen[bytes]:
    program = str(Path(sys.executable).parent / "paceline")
    arguments = (
        ["tune", "job.yaml", "--trials", "4", "--seconds", "1", "--pairs", "0"]
        if kind == TUNE
        else ["experiment", "run", "experiment.yaml"]
    )
    environment = {**os.environ, "PACELINE_HOME": str(home.path)}
    return subprocess.Popen(
        [program, *arguments], cwd=folder, env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _finished(kind: str, home: state_dirs.Home) -> list[Any]:
    """Return the runs of a study that are done, as they are stored."""
    with open_store(home.store_url) as store:
        try:
            return list(
                store.tuning("paced-trial").finished if kind == TUNE else store.experiment("fusing").done
            )
        except NotFound:
            return []


def _left(home: state_dirs.Home) -> list[str]:
    """Return what runs on after the end, and what is left of networks and cgroups."""
    with open_store(home.store_url) as store:
        runs = _runs(store)
        deadline = time.monotonic() + 10.0
        while any(leftovers.supervisor_pids(RunFolder.of(run)) for run in runs):
            if time.monotonic() > deadline:
                return ["a supervisor"]
            time.sleep(0.1)
        return [each for run in runs for each in leftovers.find(run.spec, RunFolder.of(run))]


def _runs(store: Store) -> list[Run]:
    return [store.get_run(each.name) for each in store.list_runs()]


def _checks(rows: Sequence[Row]) -> Iterator[Check]:
    kills = sum(row["kills"] for row in rows)
    yield Check(name="kills", value=kills, low=kills, high=kills, target=">= 30", holds=kills >= 30)
    yield none("studies that did not come to their end", [row["exit_code"] != 0 for row in rows])
    yield none("finished runs that were repeated or lost", [row["repeated"] for row in rows])
    yield none("processes, networks and cgroups that were left behind", [len(row["left"]) for row in rows])


def draw(result: Result, path: Path) -> None:
    """Draw how many runs each study has in the end."""
    groups = {
        kind: [row["finished"] for row in result.rows if row["kind"] == kind] for kind in (TUNE, EXPERIMENT)
    }
    plots.strips(path, groups, label="finished runs", title=f"Studies killed {KILLS} times each")
