"""Supervisor processes: they outlive the process that starts them, and others can find out whether they live.

A supervisor holds ``flock`` on ``supervisor.lock`` for as long as it, or the guard that restarts it, lives.
The kernel releases the lock however they die, so the lock is always right.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from paceline.engines.local import folders
from paceline.errors import EngineError
from paceline.model.jobs import code_sources
from paceline.model.jobs.runs import Run, RunSummary

START_SECONDS = 120.0


def is_supervised(folder: folders.RunFolder) -> bool:
    """Return whether a supervisor or its guard watches this run."""
    try:
        descriptor = os.open(folder.lock, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def is_lost(run: Run | RunSummary) -> bool:
    """Return whether a run that had not ended when it was read is lost: no supervisor watches it now."""
    return not run.phase.is_final and not is_supervised(folders.RunFolder.of(run))


def acquire(folder: folders.RunFolder, *, patience_seconds: float = 3.0) -> int | None:
    """Take the lock; return its descriptor, or None if another process watches the run.

    Agents and commands test the lock for a moment, so a single refusal is not conclusive.
    """
    descriptor = os.open(folder.lock, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                return None
            time.sleep(0.02)
        else:
            return descriptor


def sign(descriptor: int, guard: int, supervisor: int) -> None:
    """Write the lock's holders into the lock file, for people; on a full disk it is left out."""
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{guard} {supervisor}\n".encode(), 0)


def pids(folder: folders.RunFolder) -> tuple[int, ...]:
    """Return the processes that watch a run, guard and supervisor; empty if it is lost or has ended."""
    if not is_supervised(folder):
        return ()
    return tuple(int(pid) for pid in folder.lock.read_text().split())


#: The credentials for a server and for the source of the job's code.
_CREDENTIALS = ("PACELINE_TOKEN", *code_sources.CREDENTIALS)


def _without_credentials(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without credentials: every part of a job inherits it from the supervisor."""
    return {name: value for name, value in inherited.items() if name not in _CREDENTIALS}


def start(home: Path, store_url: str, name: str, folder: folders.RunFolder) -> None:
    """Start a supervisor that outlives this process; it holds the lock when this function returns.

    Raises:
        EngineError: the supervisor did not start.
    """
    try:
        with (folder.path / "supervisor.log").open("ab") as output:
            done = subprocess.run(
                [sys.executable, "-m", "paceline.surfaces.supervisor", str(home), name],
                # The URL may hold a password, and command lines are readable by every user.
                env={**_without_credentials(os.environ), "PACELINE_STORE": store_url},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd="/",
                timeout=START_SECONDS,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"the supervisor of {name} did not start: {error}") from error
    if done.returncode != 0:
        hint = f"its last words are in {folder.path}/supervisor.log"
        raise EngineError(f"the supervisor of {name} did not start (exit code {done.returncode})", hint)
