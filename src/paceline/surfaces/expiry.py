"""Deletes an ended job when its time to live is over: ``python -m paceline.surfaces.expiry HOME NAME``.

The guard of a job with a time to live executes this program when the job has ended. Until the job is due, the
process is a ``sleep``, which uses almost no memory. If the machine was restarted meanwhile, the process is
gone; a server, or the next submission, then deletes the job.
"""

from __future__ import annotations

import logging
import os
import sys
import time

from paceline.errors import NotFound, PacelineError
from paceline.model.jobs.retentions import expires_at
from paceline.services.local import state_dirs
from paceline.services.local.jobs import Jobs
from paceline.stores import open_store

#: An ended job is kept at least this long, because a process that waits for its end reads it afterwards.
LEAST_SECONDS = 10.0
#: The longest sleep: the system clock may be changed meanwhile, so it is read again.
MOST_SECONDS = 86_400.0
_AGAIN_SECONDS = 60.0
#: A shell script that sleeps, and then executes this program again.
_SLEEP = 'sleep "$1"; shift; exec "$@"'

log = logging.getLogger("paceline.expiry")


def seconds_left(home: state_dirs.Home, name: str) -> float | None:
    """Delete a due job, else return the seconds until the next check; None if nothing is left to do.

    Raises:
        PacelineError: the store cannot be read, or the job cannot be deleted.
    """
    with open_store(home.store_url) as store:
        jobs = Jobs(home, store)
        try:
            run = jobs.get(name)
        except NotFound:
            return None
        at = expires_at(run)
        if at is None:
            return None
        left = max(at, (run.finished_at or 0.0) + LEAST_SECONDS) - time.time()
        if left > 0:
            return min(left, MOST_SECONDS)
        jobs.delete(name)
        return None


def main(arguments: list[str]) -> int:
    """Delete a job that is due, or sleep until it is; return the exit code."""
    home = state_dirs.Home.from_environment({**os.environ, "PACELINE_HOME": arguments[0]})
    try:
        left = seconds_left(home, arguments[1])
    except PacelineError as error:
        log.warning("%s cannot be deleted now, trying again: %s", arguments[1], error.message)
        left = _AGAIN_SECONDS
    if left is not None:
        again = [sys.executable, "-m", "paceline.surfaces.expiry", *arguments]
        os.execv("/bin/sh", ["sh", "-c", _SLEEP, "sh", f"{left:.1f}", *again])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
