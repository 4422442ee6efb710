"""Answers that are cached for some seconds."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST_REMEMBERED = 4096


class Memory(Generic[K, V]):
    """A cache of answers that are a few seconds old at most.

    Args:
        clock: a monotonic clock in seconds.
        seconds: how long an answer is used.
    """

    def __init__(self, clock: Callable[[], float], seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self._lock = threading.Lock()
        self._known: collections.OrderedDict[K, tuple[float, V]] = collections.OrderedDict()

    def get(self, key: K, ask: Callable[[], V]) -> V:
        """Return the answer for a key, and ask again if it is too old; errors are not cached."""
        asked_at = self._clock()
        with self._lock:
            found = self._known.get(key)
        if found is not None and asked_at < found[0]:
            return found[1]
        answer = ask()
        self.keep(key, answer, asked_at)
        return answer

    def find(self, key: K) -> V | None:
        """Return the answer for a key; None: there is none, or it is too old."""
        with self._lock:
            found = self._known.get(key)
        return found[1] if found is not None and self._clock() < found[0] else None

    def keep(self, key: K, answer: V, asked_at: float | None = None) -> None:
        """Store an answer that was asked for at ``asked_at``; None: now."""
        began = self._clock() if asked_at is None else asked_at
        with self._lock:
            self._known[key] = began + self._seconds, answer
            self._known.move_to_end(key)
            while len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)

    def forget(self, key: K) -> None:
        """Drop the answer for a key, so that the next `get` asks again."""
        with self._lock:
            self._known.pop(key, None)
