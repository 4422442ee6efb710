"""Limits of requests: how often each address or caller may make one, and how many bytes are held at once."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator

#: How many addresses are tracked: beyond this, the bucket that was unused longest is dropped.
MOST_ADDRESSES = 10_000


@dataclasses.dataclass(slots=True)
class _Bucket:
    """How many requests a client may still make at once, as of a moment."""

    left: float
    at: float


class RateLimiter:
    """Token buckets, one for each client.

    Args:
        rate: how many requests a second each client regains.
        burst: how many requests a client may make at once.
        clock: a monotonic clock in seconds.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: dict[str, _Bucket] = {}

    def wait_seconds(self, who: str, cost: float = 1.0) -> float:
        """Take ``cost`` from a client's bucket and return 0, or return how long the client has to wait."""
        now = self._clock()
        bucket = self._buckets.pop(who, None) or _Bucket(self._burst, now)
        while len(self._buckets) >= MOST_ADDRESSES:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[who] = bucket
        bucket.left = min(self._burst, bucket.left + (now - bucket.at) * self._rate)
        bucket.at = now
        # A cost of 0 asks whether the client may make another request.
        if bucket.left < max(cost, 1.0):
            return (max(cost, 1.0) - bucket.left) / self._rate
        bucket.left -= cost
        return 0.0


@dataclasses.dataclass(slots=True)
class _Line:
    """The requests of one address that wait for their turn."""

    lock: asyncio.Lock = dataclasses.field(default_factory=asyncio.Lock)
    waiting: int = 0


class Guesses:
    """Wrong tokens, counted by address.

    A right token is never refused because of wrong ones from the same address: many clients may share it.
    So after too many wrong tokens an address is not blocked, but its tokens are checked one after the other,
    however long each takes. Tokens of other addresses are checked in parallel.

    Args:
        rates: limits the wrong tokens of each address.
    """

    def __init__(self, rates: RateLimiter) -> None:
        self._rates = rates
        self._lines: dict[str, _Line] = {}

    def count(self, address: str) -> float:
        """Count a wrong token; return how long its address has to wait, 0 if not at all."""
        return self._rates.wait_seconds(address)

    @contextlib.asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Wait until a token of an address may be checked."""
        if not self._rates.wait_seconds(address, cost=0.0):
            yield
            return
        line = self._lines.setdefault(address, _Line())
        line.waiting += 1
        try:
            async with line.lock:
                yield
        finally:
            line.waiting -= 1
            if not line.waiting:
                self._lines.pop(address, None)


class BodyBudget:
    """The number of bytes that requests hold at once.

    Args:
        most: the limit in total.
        most_each: the limit for one address.
    """

    def __init__(self, most: int, most_each: int) -> None:
        self._most, self._most_each = most, most_each
        self._held: collections.Counter[str] = collections.Counter()

    @property
    def held_bytes(self) -> int:
        """The number of bytes held now."""
        return self._held.total()

    def is_spent(self, address: str, size: int) -> bool:
        """Whether ``size`` more bytes would exceed the limit of an address."""
        return self._held[address] + size > self._most_each

    def has_room(self, size: int) -> bool:
        """Whether ``size`` more bytes fit into the limit in total."""
        return self.held_bytes + size <= self._most

    @contextlib.contextmanager
    def holding(self, address: str, size: int) -> Iterator[None]:
        """Count ``size`` bytes as held for the duration of the context."""
        self._held[address] += size
        try:
            yield
        finally:
            self._held[address] -= size
            if not self._held[address]:
                del self._held[address]
