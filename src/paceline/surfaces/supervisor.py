"""The process that supervises one job: ``python -m paceline.surfaces.supervisor HOME NAME``.

It moves to the background and becomes two processes. The guard holds the lock and starts the supervisor. If
the supervisor is killed, by the kernel for memory or by a user, the guard starts another, which takes over
the replicas. Replicas that lose both processes end themselves after a while; ``paceline resume`` restarts the
job.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

from paceline.engines.local import engine, machines
from paceline.errors import StoreError
from paceline.model.jobs.retentions import expires_at
from paceline.services.local import state_dirs, supervisions, supervisors
from paceline.stores import Store, open_store

#: From ``linux/prctl.h``.
PR_SET_CHILD_SUBREAPER = 36
MAX_DEATHS = 20
PAUSE_SECONDS = 0.2
#: Exit code of a supervisor that cannot work now, because the disk is full or the store does not answer
#: (EX_TEMPFAIL in sysexits.h). It does not count as a death; the guard tries again for a day.
NOT_NOW = 75
#: Exit code of a supervisor whose job has ended and has a time to live, after which it is deleted (`expiry`).
EXPIRES = 76
NOT_NOW_PAUSE_SECONDS, NOT_NOW_SECONDS = 2.0, 86_400.0
#: A supervisor that has lived for so long has nothing to do with the troubles of those before it.
LONG_LIFE_SECONDS = 300.0

log = logging.getLogger("paceline.supervisor")


def main(arguments: list[str]) -> int:
    """Guard the supervisor of one job until the job is final; return the exit code."""
    home = state_dirs.Home.from_environment({**os.environ, "PACELINE_HOME": arguments[0]})
    name = arguments[1]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lock = supervisors.acquire(home.folder(name))
    if lock is None:
        log.info("another supervisor watches %s already", name)
        return 0
    if os.fork() != 0:
        # The process that started this one may continue: the child keeps holding the lock.
        os._exit(0)
    os.ftruncate(lock, 0)  # The process whose signature is in the file is gone.
    # Replicas of a dead supervisor become children of this process, so that none stays a zombie.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    troubles = Troubles()
    while True:
        born = time.monotonic()
        child = os.fork()
        if child == 0:
            os._exit(_supervise(home, name))
        supervisors.sign(lock, os.getpid(), child)
        status = _wait(child)
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        if code == EXPIRES:
            os.close(lock)
            again = [sys.executable, "-m", "paceline.surfaces.expiry", str(home.path), name]
            os.execv(sys.executable, again)
        if code == 0:
            return 0
        pause_seconds = troubles.pause_seconds(born, time.monotonic(), not_now=code == NOT_NOW)
        if pause_seconds is None:
            log.error("the supervisor died %d times; giving up", MAX_DEATHS)
            return 1
        if code != NOT_NOW:
            log.error("the supervisor died (wait status %d); starting another", status)
        time.sleep(pause_seconds)


class Troubles:
    """How often supervisors have died in a row, and since when none could work; times are of one clock."""

    def __init__(self) -> None:
        self._deaths = 0
        self._since: float | None = None

    def pause_seconds(self, born: float, ended: float, *, not_now: bool) -> float | None:
        """Return how long to wait before the next supervisor begins; None: no other one is to begin.

        Args:
            born: when the last supervisor began.
            ended: when it ended.
            not_now: whether it ended because it cannot work now, and not by a fault.
        """
        if ended - born >= LONG_LIFE_SECONDS:  # What was wrong before it is over.
            self._deaths, self._since = 0, None
        if not_now:
            self._since = ended if self._since is None else self._since
            if ended - self._since < NOT_NOW_SECONDS:
                return NOT_NOW_PAUSE_SECONDS
        self._deaths += 1
        return None if self._deaths >= MAX_DEATHS else PAUSE_SECONDS * self._deaths


def _wait(child: int) -> int:
    """Reap children until the supervisor ends, and return its wait status."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def _supervise(home: state_dirs.Home, name: str) -> int:
    """Run a supervisor, and another one each time the job continues with a new file; return the exit code."""
    try:
        folder = home.folder(name)
        with open_store(home.store_url) as store:
            goes_on = True
            while goes_on:
                local = engine.LocalEngine(store.get_run(name).spec, folder, machines.read())
                supervision = supervisions.Supervision(
                    name, store=store, engine=local, folder=folder, clock=time.time, stopwatch=time.monotonic
                )
                with _autoscaled(home, name, store):
                    supervision.run()
                goes_on = _carries_on(home, store, name)
            is_kept = expires_at(store.get_run(name)) is None
    except Exception as error:  # The outermost handler: the guard starts another supervisor.
        if _passes(error):
            log.warning("%s cannot be looked after now, trying again: %s", name, error)
            return NOT_NOW
        log.exception("the supervisor of %s failed", name)
        return 1
    return 0 if is_kept else EXPIRES


@contextlib.contextmanager
def _autoscaled(home: state_dirs.Home, name: str, store: Store) -> Iterator[None]:
    """Run the autoscaler, which moves cores within the job, during the block if the job file asks for it."""
    if store.get_run(name).spec.autoscale is None:
        yield
        return
    # Imported here because most jobs never need these modules.
    from paceline.services.local.jobs import Jobs
    from paceline.services.studying.autoscales import Autoscaler

    over = threading.Event()

    def go() -> None:
        with open_store(home.store_url) as own:
            Autoscaler(jobs=Jobs(home, own), name=name).go(over.is_set)

    thread = threading.Thread(target=go, name="autoscaler", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()  # The thread ends at its next check; a probe of an ended job ends at once.


def _passes(error: Exception) -> bool:
    """Return whether an error is temporary: a full disk, or a store that does not answer."""
    is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return is_full or isinstance(error, StoreError)


def _carries_on(home: state_dirs.Home, store: Store, name: str) -> bool:
    """Resume an ended job if a change of its job file was requested; return whether it was resumed."""
    if store.waiting_change(name) is None:
        return False
    # Imported here because most jobs never need these modules.
    from paceline.services.local import spec_changes
    from paceline.services.local.run_registry import RunRegistry

    return spec_changes.carry_on(RunRegistry(home, store), name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
