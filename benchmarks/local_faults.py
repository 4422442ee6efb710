"""Kill -9 at random moments: replicas, the supervisor, its guard with it, the command line.

Each trial is a real training job (``benchmarks.counted``) submitted with ``paceline run``. It has to end as
its policy says, with no process, cgroup, namespace or port left, and with every line in its logs that its
processes wrote.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from support import kills, leftovers

from benchmarks import plots, trials
from benchmarks.protocols import Bench, Check, Result
from paceline import specs
from paceline.engines.local.folders import RunFolder
from paceline.errors import NotFound, PacelineError
from paceline.model.jobs.job_specs import Host, JobSpec, RestartPolicy, RestartWhen
from paceline.model.jobs.runs import Run
from paceline.services.local import jobs

VICTIMS = ("ps-0", "ps-1", "worker-0", "worker-1", "supervisor", "guard and supervisor", "command line")
#: A job of this size takes about this long where nothing is killed.
SPAN_SECONDS = 14.0
TRIAL_SECONDS = 240.0


@dataclasses.dataclass(frozen=True)
class Trial:
    """One random choice of whom to kill, when, and what the job's policy is."""

    victim: str
    whole: bool  # the agent, or the command that it wraps
    after_seconds: float
    restart: RestartWhen
    hosts: bool


def run(bench: Bench) -> list[Check]:
    """Run the trials."""
    count = 5 if bench.quick else 50
    bench.plan(count)
    generator = random.Random(0)
    data = trials.clicks_data("clicks-tiny")
    for number in range(count):
        trial = Trial(
            victim=VICTIMS[number % len(VICTIMS)],
            whole=generator.random() < 0.5,
            after_seconds=generator.uniform(0.0, SPAN_SECONDS),
            restart=RestartWhen.NEVER if generator.random() < 0.2 else RestartWhen.ON_FAILURE,
            hosts=generator.random() < 0.5,
        )
        bench.repeat(f"trial {number}", functools.partial(_run, trial, data))
    return [
        _none("jobs that ended otherwise than their policy says", bench, "wrong_end"),
        _none("processes, cgroups, namespaces or ports left", bench, "leftovers"),
        _none("log lines lost", bench, "lost_lines"),
        Check(
            name="trials", value=len(bench.rows), low=None, high=None,
            target=f">= {count}", holds=len(bench.rows) >= count,
        ),
    ]  # fmt: skip


def _none(name: str, bench: Bench, column: str) -> Check:
    total = float(
        sum(row[column] if isinstance(row[column], int) else len(row[column]) for row in bench.rows)
    )
    return Check(name=name, value=total, low=total, high=total, target="0", holds=total == 0)


def _run(trial: Trial, data: Path) -> dict[str, Any]:
    with trials.service() as api:
        spec = _spec(trial, data)
        path = api.home.path / "trial.yaml"
        path.write_text(specs.dump_job(spec))
        environment = {**os.environ, "PACELINE_HOME": str(api.home.path)}
        program = Path(sys.executable).parent / "paceline"
        start = time.monotonic()
        with subprocess.Popen(
            [program, "run", path], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as command_line:
            try:
                run = kills.until(lambda: _find(api, spec.name))
                time.sleep(max(0.0, trial.after_seconds - (time.monotonic() - start)))
                hit = _kill(trial, run, command_line)
                run = _wait(api, run, command_line)
            finally:
                command_line.kill()
        seconds = time.monotonic() - start
        folder = RunFolder.of(run)
        with contextlib.suppress(TimeoutError):
            kills.until(lambda: not leftovers.supervisor_pids(folder), seconds=5)
        left = leftovers.find(run.spec, folder) + [
            f"supervisor {p}" for p in leftovers.supervisor_pids(folder)
        ]
        lost, lines = _lines(folder.path / "counted", folder.logs)
        return {
            **dataclasses.asdict(trial),
            "hit": hit,
            "phase": str(run.phase),
            "message": run.message,
            "wrong_end": int(not _ended_right(trial, run, hit)),
            "leftovers": left,
            "lost_lines": lost,
            "lines": lines,
            "seconds": seconds,
        }


def _spec(trial: Trial, data: Path) -> JobSpec:
    spec = trials.example("clicks", checkpoint={"every_seconds": 2, "keep": 2})
    restart = RestartPolicy(when=trial.restart, limit=3)
    return dataclasses.replace(
        spec,
        name="trial",
        command=(sys.executable, "-m", "benchmarks.counted", "{run_dir}/counted", "--data", str(data)),
        roles=tuple(dataclasses.replace(role, restart=restart) for role in spec.roles),
        hosts=(Host(name="a"), Host(name="b")) if trial.hosts else (),
        termination_grace_seconds=5.0,
    )


def _find(api: jobs.Jobs, name: str) -> Run | None:
    try:
        return api.get(name)
    except NotFound:
        return None


def _kill(trial: Trial, run: Run, command_line: subprocess.Popen[bytes]) -> bool:
    """Kill the victim; return whether it was there to be killed."""
    folder = RunFolder.of(run)
    match trial.victim:
        case "command line":
            command_line.kill()
            return True
        case "supervisor":
            return kills.kill(leftovers.supervisor_pids(folder)[1:])
        case "guard and supervisor":
            return kills.kill(leftovers.supervisor_pids(folder))
        case replica:
            return kills.kill(kills.replica_pids(folder, replica, whole=trial.whole))


def _wait(api: jobs.Jobs, run: Run, command_line: subprocess.Popen[bytes]) -> Run:
    """Wait for the end; a lost job is resumed by the ``run`` that follows it, or by us when that is gone."""
    deadline = time.monotonic() + TRIAL_SECONDS
    while not (run := api.get(run.name)).phase.is_final and time.monotonic() < deadline:
        if api.is_lost(run) and command_line.poll() is not None:
            with contextlib.suppress(PacelineError):
                api.resume(run.name)
        time.sleep(0.2)
    return run


def _ended_right(trial: Trial, run: Run, hit: bool) -> bool:
    replica_died = hit and trial.victim[:2] in ("ps", "wo")
    if replica_died and trial.restart is RestartWhen.NEVER and run.phase == "failed":
        return "failed" in run.message
    # A replica killed while the job was ending anyway changes nothing.
    return run.phase == "succeeded"


def _lines(acknowledged: Path, logs: Path) -> tuple[int, int]:
    """Return how many acknowledged lines are missing from the logs, and how many there should be."""
    lost = expected = 0
    for path in acknowledged.glob("*"):
        last = int(path.read_text().strip() or 0)
        log = (logs / f"{path.name}.log").read_text(errors="replace")
        found = {int(number) for number in re.findall(r"line (\d+)\n", log)}
        lost += len(set(range(1, last + 1)) - found)
        expected += last
    return lost, expected


def draw(result: Result, path: Path) -> None:
    """Draw how long jobs took after each kind of death."""
    groups: dict[str, list[float]] = {}
    for row in result.rows:
        groups.setdefault(row["victim"], []).append(row["seconds"])
    plots.strips(path, groups, label="seconds to the end", title="Jobs after kill -9, by victim")
