"""A lock that allows one change of a running job at a time: a change would falsify a measurement under way.

The lock is a file in the run's folder, so the kernel releases it however its holder dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from paceline.engines.local import folders
from paceline.errors import Conflict, StoreError

_MOST_BYTES = 200


@contextlib.contextmanager
def held(folder: folders.RunFolder, doing: str) -> Iterator[None]:
    """Hold the change lock of a run.

    Args:
        folder: the run's folder.
        doing: what the holder does to the run, such as ``resized``; shown to processes that find the lock
            taken.

    Raises:
        Conflict: another process changes the run.
        StoreError: the run's folder cannot be written.
    """
    try:
        descriptor = os.open(folder.change_lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(f"{folder.change_lock} cannot be opened: {error.strerror or error}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            who = os.pread(descriptor, _MOST_BYTES, 0).decode("utf-8", "replace").strip()
            raise Conflict(
                f"{folder.path.name} is being {who or 'changed'}", "try again when that is over"
            ) from error
        with contextlib.suppress(OSError):  # On a full disk the holder stays unnamed.
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{doing} by process {os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
