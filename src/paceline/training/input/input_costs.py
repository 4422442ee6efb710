"""What input costs a trainer: waiting time, and the CPU time of the threads that read and decode."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple


class Cost(NamedTuple):
    """Seconds so far.

    Attributes:
        wait: the time in which the trainer had no batch, though it had a shard to read.
        cpu: the CPU time of the threads that read and decode, as far as they are Python's.
    """

    wait: float = 0.0
    cpu: float = 0.0


class CpuCounter:
    """Adds up the CPU seconds of several threads; each thread adds its own from time to time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lock = threading.Lock()
        self._own = threading.local()

    def tell(self) -> None:
        """Add what the calling thread has used since its last call, or since the thread began."""
        now = time.thread_time()
        with self._lock:
            self.seconds += now - getattr(self._own, "told", 0.0)
        self._own.told = now


class IdleMeter:
    """The seconds in which one thread had nothing to do; another thread may read them at any time."""

    def __init__(self) -> None:
        self._state: tuple[float, float | None] = (0.0, None)

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Count the time of a block."""
        begun = time.perf_counter()
        self._state = self._state[0], begun
        try:
            yield
        finally:
            self._state = self._state[0] + time.perf_counter() - begun, None

    @property
    def seconds(self) -> float:
        """All of these seconds so far, including those of the pause under way."""
        total, begun = self._state
        return total if begun is None else total + time.perf_counter() - begun
