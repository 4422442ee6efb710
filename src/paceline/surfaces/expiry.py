"""Deletes an ended job when its time to live is over: ``python -m paceline.surfaces.expiry HOME NAME``.

The guard of a job becomes this when the job has ended. While there is time it is a ``sleep``, which holds
next to nothing. A machine that was restarted meanwhile has none; then a server, or the next submit, does it.
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

#: Who waits for a job's end looks at it then, so that it is not gone at once.
LEAST_SECONDS = 10.0
#: A clock may be set meanwhile, so that it is looked at now and then.
MOST_SECONDS = 86_400.0
_AGAIN_SECONDS = 60.0
#: What the shell becomes: a sleep, and then this program again.
_SLEEP = 'sleep "$1"; shift; exec "$@"'

log = logging.getLogger("paceline.expiry")


def seconds_left(home: state_dirs.Home, name: str) -> float | None:
    """Return after how long to look again; None: the job is gone, or deleted now, or kept.

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
    """Delete a job that is due, or sleep until then; return the exit code."""
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
