"""What is counted of requests: how often each address or caller may ask, how many bytes are held at once."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator

#: More addresses than this are not told apart: those that have waited longest begin anew.
MOST_ADDRESSES = 10_000


@dataclasses.dataclass(slots=True)
class _Bucket:
    """What a client may still ask at once, as of a moment."""

    left: float
    at: float


class RateLimiter:
    """Token buckets, one for each client.

    Args:
        rate: how many more each may ask a second.
        burst: how many at once.
        clock: seconds of any clock that only goes on.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: dict[str, _Bucket] = {}

    def wait_seconds(self, who: str, cost: float = 1.0) -> float:
        """Take ``cost`` from what a client may ask; return 0, or for how long it has to wait first."""
        now = self._clock()
        bucket = self._buckets.pop(who, None) or _Bucket(self._burst, now)
        while len(self._buckets) >= MOST_ADDRESSES:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[who] = bucket
        bucket.left = min(self._burst, bucket.left + (now - bucket.at) * self._rate)
        bucket.at = now
        # What costs nothing asks whether anything is left.
        if bucket.left < max(cost, 1.0):
            return (max(cost, 1.0) - bucket.left) / self._rate
        bucket.left -= cost
        return 0.0


@dataclasses.dataclass(slots=True)
class _Line:
    """Those of one address that wait for their turn."""

    lock: asyncio.Lock = dataclasses.field(default_factory=asyncio.Lock)
    waiting: int = 0


class Guesses:
    """Wrong tokens, counted by address.

    A right token is never refused for wrong ones of the same address: many clients may stand behind it.
    So an address that has brought too many is not turned away unread, but its tokens are looked at one
    after the other, whatever that takes, and those of other addresses beside them.

    Args:
        rates: of wrong tokens.
    """

    def __init__(self, rates: RateLimiter) -> None:
        self._rates = rates
        self._lines: dict[str, _Line] = {}

    def count(self, address: str) -> float:
        """Count a wrong token; return for how long its address has to wait, 0 if not at all."""
        return self._rates.wait_seconds(address)

    @contextlib.asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Wait until a token of an address may be looked at."""
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
    """Bytes that requests hold at once.

    Args:
        most: in all.
        most_each: of one address.
    """

    def __init__(self, most: int, most_each: int) -> None:
        self._most, self._most_each = most, most_each
        self._held: collections.Counter[str] = collections.Counter()

    @property
    def held_bytes(self) -> int:
        """How many are held now."""
        return self._held.total()

    def is_spent(self, address: str, size: int) -> bool:
        """Whether an address alone would hold too many with so many more."""
        return self._held[address] + size > self._most_each

    def has_room(self, size: int) -> bool:
        """Whether there is room for so many more in all."""
        return self.held_bytes + size <= self._most

    @contextlib.contextmanager
    def holding(self, address: str, size: int) -> Iterator[None]:
        """Hold bytes for as long as this lasts."""
        self._held[address] += size
        try:
            yield
        finally:
            self._held[address] -= size
            if not self._held[address]:
                del self._held[address]
