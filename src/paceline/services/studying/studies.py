"""Locks for studies (searches and experiments), so that one process at a time works on a study."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from paceline.errors import Conflict, StoreError


@contextlib.contextmanager
def alone(home: Path, name: str) -> Iterator[None]:
    """Hold the lock of a study, so that no two processes work on it at once.

    Raises:
        Conflict: another process works on the study.
        StoreError: the state folder cannot be written.
    """
    folder = home / "studies"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = (folder / f"{name}.lock").open("a")
    except OSError as error:
        raise StoreError(
            f"the state folder {home} cannot be written: {error.strerror or error}",
            "set PACELINE_HOME to a folder that can be written",
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Conflict(
                f"another process makes the trials of {name} now", "wait for the end of that"
            ) from error
        yield
