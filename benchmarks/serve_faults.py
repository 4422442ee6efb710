"""A server that is killed at random moments while jobs are submitted to it: none is lost, none made twice.

Whoever submits does as a careful client does: a submit that was not answered is sent again with its key.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2

from benchmarks import leftovers, plots
from benchmarks.protocols import Bench, Check, Result, Row, none
from benchmarks.served import Server, serving
from paceline.engines.local import machines
from paceline.engines.local.engine import release
from paceline.services import homes, supervisors
from paceline.services.jobs import folder_of
from paceline.stores import open_store

KILLS, QUICK_KILLS = 20, 3
CLIENTS = 3
#: Between two kills; a submit takes about half a second.
LEAST_SECONDS, MOST_SECONDS = 0.5, 4.0
START_SECONDS = 60.0
JOB = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: tiny}
spec:
  termination_grace: 1s
  roles:
    worker: {command: ["true"], restart: {when: never}}
"""


def run(bench: Bench) -> list[Check]:
    """Kill a server again and again."""
    kills = QUICK_KILLS if bench.quick else KILLS
    bench.plan(kills)
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder:
        home = homes.Home.from_environment({"PACELINE_HOME": folder})
        with open_store(home.store_url):
            pass
        for number in range(kills):
            bench.repeat(f"kill {number}", functools.partial(_killed, home, number))
    return list(_checks(bench.rows))


def _checks(rows: Sequence[Row]) -> Iterator[Check]:
    yield none("submits that were answered, and whose job is not there", [row["lost"] for row in rows])
    yield none("keys of which there are two jobs", [row["doubled"] for row in rows])
    yield none("jobs that nobody looks after", [row["unattended"] for row in rows])
    yield none("changes that are not in the audit log", [row["unaudited"] for row in rows])
    count = sum(row["answered"] for row in rows)
    yield Check(name="submits answered", value=count, low=count, high=count, target="told", holds=True)


def _killed(home: homes.Home, number: int) -> dict[str, Any]:
    """Submit jobs, kill the server meanwhile, start another, let clients go on; say what became of it."""
    chance = random.Random(number)
    answered: dict[str, str] = {}
    ended = threading.Event()
    known: list[Server] = []
    written = _audits(home)
    clients = [
        threading.Thread(target=_submit, args=(lambda: known[-1], f"{number}-{each}", answered, ended))
        for each in range(CLIENTS)
    ]
    with serving(home) as first:
        known.append(first)
        for client in clients:
            client.start()
        time.sleep(chance.uniform(LEAST_SECONDS, MOST_SECONDS))
        os.kill(first.pid, signal.SIGKILL)
    with serving(home) as second:
        known.append(second)
        ended.set()  # Each brings the submit to its end that it has begun.
        for client in clients:
            client.join()
    return {**_found(home, answered), "unaudited": max(0, len(answered) - (_audits(home) - written))}


def _audits(home: homes.Home) -> int:
    with open_store(home.store_url) as store:
        return len(store.audits(limit=1_000_000))


def _submit(
    server: Callable[[], Server], client: str, answered: dict[str, str], ended: threading.Event
) -> None:
    """Submit one job after the other, each until it is answered."""
    number = 0
    while not ended.is_set():
        key = f"{client}-{number}"
        number += 1
        while key not in answered:
            with contextlib.suppress(httpx2.HTTPError):
                headers = {"Authorization": f"Bearer {server().token}", "Idempotency-Key": key}
                answer = httpx2.post(
                    f"{server().url}/api/v1/jobs", json={"source": JOB}, headers=headers, timeout=30.0
                )
                if answer.status_code == 201:
                    answered[key] = answer.json()["name"]
                    break
            time.sleep(0.1)


def _found(home: homes.Home, answered: dict[str, str]) -> dict[str, Any]:
    """Count what went wrong, and remove the jobs."""
    with open_store(home.store_url) as store:
        deadline = time.monotonic() + START_SECONDS
        while any(supervisors.is_supervised(folder_of(run)) for run in store.list_runs()):
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        runs = {run.name: run for run in store.list_runs()}
        names = list(answered.values())
        row = {
            "answered": len(answered),
            "lost": sum(name not in runs for name in names),
            # Each submit has a key of its own; one that was cut off for good has a job and no answer.
            "doubled": (len(names) - len(set(names))) + max(0, len(runs) - len(names)),
            "unattended": sum(not run.phase.is_final for run in runs.values()),
        }
        for run in runs.values():
            folder = folder_of(run)
            for pid in leftovers.supervisor_pids(folder):
                os.kill(pid, signal.SIGKILL)
            release(folder, machines.read())
            store.delete_run(run.name)
    return row


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what was done."""
    yield f"{len(rows)} kills while {CLIENTS} clients submitted, each sending again what was not answered."


def draw(result: Result, path: Path) -> None:
    """Draw how many submits were answered around each kill."""
    groups = {"submits answered around a kill": [float(row["answered"]) for row in result.rows]}
    plots.strips(path, groups, label="submits", title="A server that is killed while jobs are submitted")
