"""One change of a job that runs at a time: who measures one must not have another beneath it.

The lock is a file in the run's folder, so the kernel gives it back however its holder dies.
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
    """Hold the lock of a run.

    Args:
        folder: the run's.
        doing: what is done to it meanwhile, such as ``resized``, for those who come too late.

    Raises:
        Conflict: another process changes it.
        StoreError: its folder cannot be written.
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
        with contextlib.suppress(OSError):  # On a full disk others are not told who it is.
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{doing} by process {os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
