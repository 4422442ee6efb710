"""Careful clients: each submits one tiny job after the other, and sends again what was not answered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import httpx2

from paceline.engines.local import machines
from paceline.engines.local.engine import release
from paceline.engines.local.folders import RunFolder
from paceline.services.local import state_dirs, supervisors
from paceline.stores import open_store
from support import kills, leftovers
from support.served import Server

CLIENTS = 3
END_SECONDS = 240.0
JOB = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: tiny}
spec:
  termination_grace: 1s
  roles:
    worker: {command: ["true"], restart: {when: never}}
"""
#: A server that cannot now says so, and when to come again.
_NOT_NOW = (503, 507)


class Submitters:
    """Clients that submit until they are told to end.

    Args:
        server: says where, each time.
        name: theirs, for their keys.
    """

    def __init__(self, server: Callable[[], Server], name: str) -> None:
        self._server = server
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._submit, args=(f"{name}-{each}",)) for each in range(CLIENTS)
        ]
        #: The job that each key has made.
        self.answered: dict[str, str] = {}
        #: How often a server said that it cannot now, as it should; and what it said otherwise.
        self.refusals = 0
        self.wrong: list[str] = []

    @property
    def answers(self) -> int:
        """Return how often a server has answered, whatever it said."""
        return len(self.answered) + self.refusals + len(self.wrong)

    def start(self) -> None:
        """Begin."""
        for each in self._threads:
            each.start()

    def end(self) -> None:
        """Let each bring the submit to its end that it has begun."""
        self._ended.set()
        for each in self._threads:
            each.join()

    def goes_on(self) -> float:
        """Wait until each could have had an answer again; return how many seconds the first one took.

        Raises:
            TimeoutError: they get none.
        """
        begun, count = time.monotonic(), len(self.answered)
        kills.until(lambda: len(self.answered) > count, seconds=END_SECONDS)
        took = time.monotonic() - begun
        kills.until(lambda: len(self.answered) > count + CLIENTS, seconds=END_SECONDS)
        return took

    def _submit(self, client: str) -> None:
        number = 0
        while not self._ended.is_set():
            key = f"{client}-{number}"
            number += 1
            while not self._is_answered(key):
                time.sleep(0.1)

    def _is_answered(self, key: str) -> bool:
        server = self._server()
        headers = {"Authorization": f"Bearer {server.token}", "Idempotency-Key": key}
        try:
            answer = httpx2.post(
                f"{server.url}/api/v1/jobs", json={"source": JOB}, headers=headers, timeout=240.0
            )
        except httpx2.HTTPError:
            return False  # It was killed.
        if answer.status_code == 201:
            self.answered[key] = answer.json()["name"]
            return True
        is_problem = answer.headers["content-type"] == "application/problem+json"
        if answer.status_code in _NOT_NOW and is_problem and "retry-after" in answer.headers:
            self.refusals += 1
        else:
            self.wrong.append(f"{answer.status_code} {answer.text[:300]}")
        return False


def became(home: state_dirs.Home, answered: dict[str, str]) -> dict[str, Any]:
    """Count what went wrong with jobs that were submitted, and remove all of the home."""
    with open_store(home.store_url) as store:
        deadline = time.monotonic() + END_SECONDS
        while any(supervisors.is_supervised(RunFolder.of(run)) for run in store.list_runs()):
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        runs = {run.name: run for run in store.list_runs()}
        names = list(answered.values())
        row = {
            "answered": len(answered),
            "lost": sum(name not in runs for name in names),
            # Each submit has a key of its own, and is sent until it is answered.
            "doubled": (len(names) - len(set(names))) + max(0, len(runs) - len(names)),
            "unattended": sum(not run.phase.is_final for run in runs.values()),
            "unaudited": max(0, len(answered) - len(store.audits(limit=1_000_000))),
        }
        for run in runs.values():
            folder = RunFolder.of(run)
            kills.kill(leftovers.supervisor_pids(folder))
            release(folder, machines.read())
            store.delete_run(run.name)
    return row
