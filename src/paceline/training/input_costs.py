"""What input costs a trainer: time that it waits for, and CPU time of the threads that read and decode."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple


class Cost(NamedTuple):
    """Seconds so far.

    Attributes:
        wait: for which the trainer had no batch.
        cpu: of the threads that read and decode, as far as they are Python's.
    """

    wait: float = 0.0
    cpu: float = 0.0


class CpuCounter:
    """Adds up the CPU seconds of several threads; each tells its own from time to time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lock = threading.Lock()
        self._own = threading.local()

    def tell(self) -> None:
        """Counts what the calling thread has used since it told last, or since it began."""
        now = time.thread_time()
        with self._lock:
            self.seconds += now - getattr(self._own, "told", 0.0)
        self._own.told = now
