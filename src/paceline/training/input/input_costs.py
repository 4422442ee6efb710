"""What input costs a trainer: time that it waits for, and CPU time of the threads that read and decode."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple


class Cost(NamedTuple):
    """Seconds so far.

    Attributes:
        wait: for which the trainer had no batch, though it had a shard to read.
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


class IdleMeter:
    """The seconds for which one thread had nothing to go on with; another may ask for them at any time."""

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
        """All of them so far, those of the pause under way too."""
        total, begun = self._state
        return total if begun is None else total + time.perf_counter() - begun
