"""Kill -9 for benchmarks: of a replica as it runs now, its agent or the command that the agent wraps."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import psutil

from paceline.engines.local import folders, processes
from paceline.model.roles import ReplicaId

Found = TypeVar("Found")


def until(find: Callable[[], Found | None], *, seconds: float = 240.0, every_seconds: float = 0.05) -> Found:
    """Return what is found, once it is.

    Raises:
        TimeoutError: it was not in that time.
    """
    deadline = time.monotonic() + seconds
    while not (found := find()):
        if time.monotonic() > deadline:
            raise TimeoutError("it did not happen in time")
        time.sleep(every_seconds)
    return found


def replica_pids(folder: folders.RunFolder, name: str, *, whole: bool) -> list[int]:
    """Return the process to kill of the newest attempt of a replica, none if nothing runs: its agent, or the
    command alone.
    """
    replica = ReplicaId.parse(name)
    attempts = [int(path.suffix[1:]) for path in folder.attempt(replica, 1).parent.glob(f"{replica}.*")]
    agent = processes.agent_pid(folder.config(replica, max(attempts))) if attempts else None
    if not agent or whole:
        return [agent] if agent else []
    with contextlib.suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(agent).children()[:1]]
    return []


def kill(pids: Iterable[int]) -> bool:
    """Kill processes; return whether there were any."""
    pids = list(pids)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)
