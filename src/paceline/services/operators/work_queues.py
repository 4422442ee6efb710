"""A queue of keys to work on: each is queued once, for any number of reasons, and taken by one worker."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from typing import Generic, TypeVar

from paceline.model import backoffs

FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 0.2, 60.0

Key = TypeVar("Key")


class WorkQueue(Generic[Key]):
    """Keys with the time at which each is due."""

    def __init__(self) -> None:
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._count = itertools.count()
        self._under_way: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._changed = asyncio.Event()

    def add(self, key: Key, after_seconds: float = 0.0) -> None:
        """Queue a key, to be due after some time at the latest."""
        due = asyncio.get_running_loop().time() + after_seconds
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            self._push(key)

    def _push(self, key: Key) -> None:
        """Put a key into the heap, unless it is being worked on: then `done` does that."""
        if key not in self._under_way:
            heapq.heappush(self._heap, (self._due[key], next(self._count), key))
            self._changed.set()

    def retry(self, key: Key) -> None:
        """Queue a failed key again; each failure in a row makes the delay longer."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add(key, backoffs.doubled(FIRST_RETRY_SECONDS, failures, MAX_RETRY_SECONDS))

    def done(self, key: Key, *, failed: bool = False) -> None:
        """Return a key that was taken."""
        self._under_way.discard(key)
        if key in self._due:
            self._push(key)
        if failed:
            self.retry(key)
        else:
            self._failures.pop(key, None)

    async def take(self) -> Key:
        """Return the next key as soon as it is due; it belongs to the caller until `done`."""
        while True:
            self._changed.clear()
            key, wait = self._next(asyncio.get_running_loop().time())
            if key is not None:
                return key
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()

    def _next(self, now: float) -> tuple[Key | None, float | None]:
        """Return a due key, or else the seconds until one is due; None for both if the queue is empty."""
        while self._heap:
            due, _, key = self._heap[0]
            if self._due.get(key) != due or key in self._under_way:
                heapq.heappop(self._heap)  # stale: the key was taken, or is due earlier
            elif due > now:
                return None, due - now
            else:
                heapq.heappop(self._heap)
                del self._due[key]
                self._under_way.add(key)
                return key, None
        return None, None
