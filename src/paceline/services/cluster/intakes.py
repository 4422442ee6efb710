"""Limits how much of what replicas write is taken: per replica, per run and per namespace.

A replica runs a user's script. An honest script writes a line or two a second, or a line for each worker of a
coordinator. Far more would fill the store that all users share, so the excess is left out, counted and
reported as an event. Bytes are not left out but read later: they wait with the agent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from paceline.model.jobs.runs import JobEvent
from paceline.model.roles import ReplicaId
from paceline.sources.spools import SpoolReading

#: The kind of the event that reports left-out lines, and the least time between two such events of a replica.
LEFT_OUT, TELL_SECONDS = "left-out", 600.0
#: Above this number of buckets, those unused for `TELL_SECONDS` are dropped, which makes them full again.
MOST_BUCKETS = 20_000

T = TypeVar("T")


class Rate(NamedTuple):
    """A rate in the long run, and the most at once, for what was written while no process read."""

    per_second: float
    at_once: float


@dataclasses.dataclass(frozen=True, slots=True)
class IntakeLimits:
    """The rates at which the output of a replica, of a run and of a namespace is taken."""

    replica: Rate
    run: Rate
    namespace: Rate

    def __iter__(self) -> Iterator[Rate]:
        return iter((self.replica, self.run, self.namespace))


#: Limits on samples, step reports and evaluations.
RECORDS = IntakeLimits(Rate(500, 500_000), Rate(10_000, 10_000_000), Rate(50_000, 50_000_000))
#: Limits on events, which are kept as text.
EVENTS = IntakeLimits(Rate(0.1, 500), Rate(2, 50_000), Rate(10, 200_000))
BYTES = IntakeLimits(Rate(1 << 20, 1 << 28), Rate(1 << 23, 1 << 30), Rate(1 << 25, 1 << 32))


class Whose(NamedTuple):
    """The pod that writes something, and its run and namespace."""

    namespace: str
    run: str
    pod: str

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """The bucket keys of the replica, the run and the namespace."""
        return (self.run, self.pod), (self.run,), (self.namespace, "")


class IntakeBudget:
    """Token buckets that say how much may still be taken from any number of replicas.

    Args:
        limits: the rates.
        clock: monotonic seconds.
    """

    def __init__(self, limits: IntakeLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._left: dict[tuple[str, ...], tuple[float, float]] = {}

    def left(self, whose: Whose) -> int:
        """Return how much may be taken now."""
        return max(0, int(min(self._level(key, rate) for key, rate in self._pairs(whose))))

    def take(self, whose: Whose, amount: int) -> None:
        """Note that an amount was taken."""
        now = self._clock()
        for key, rate in self._pairs(whose):
            self._left[key] = self._level(key, rate) - amount, now
        if len(self._left) > MOST_BUCKETS:
            self._left = {
                key: (level, at) for key, (level, at) in self._left.items() if now - at < TELL_SECONDS
            }

    def _pairs(self, whose: Whose) -> list[tuple[tuple[str, ...], Rate]]:
        return list(zip(whose.keys, self._limits, strict=True))

    def _level(self, key: tuple[str, ...], rate: Rate) -> float:
        if key not in self._left:
            return rate.at_once
        level, at = self._left[key]
        return min(rate.at_once, level + rate.per_second * (self._clock() - at))


class Intake:
    """Leaves out what replicas write beyond the limits.

    Args:
        clock: monotonic seconds.
        records: the limits on samples, step reports and evaluations.
        events: the limits on events.
        sizes: the limits on bytes.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        records: IntakeLimits = RECORDS,
        events: IntakeLimits = EVENTS,
        sizes: IntakeLimits = BYTES,
    ) -> None:
        self._clock = clock
        self._records, self._events, self._sizes = (
            IntakeBudget(each, clock) for each in (records, events, sizes)
        )
        self._told: dict[tuple[str, str], tuple[float, int]] = {}

    def may_read(self, whose: Whose) -> bool:
        """Return whether more may be read now."""
        return self._sizes.left(whose) > 0

    def admit(
        self,
        whose: Whose,
        reading: SpoolReading,
        size_bytes: int,
        *,
        replica: ReplicaId,
        attempt: int,
        now: float,
    ) -> SpoolReading:
        """Return the part of a reading that is taken; an event at ``now`` (Unix seconds) counts the rest."""
        self._sizes.take(whose, size_bytes)
        room = self._records.left(whose)
        evaluations, room = _some(reading.evaluations, room)
        samples, room = _some(reading.samples, room)
        steps, room = _some(reading.steps, room)
        events, _ = _some(reading.events, self._events.left(whose))
        self._records.take(whose, len(evaluations) + len(samples) + len(steps))
        self._events.take(whose, len(events))
        before = len(reading.evaluations) + len(reading.samples) + len(reading.steps) + len(reading.events)
        left_out = before - len(evaluations) - len(samples) - len(steps) - len(events)
        message = self._message(whose, left_out)
        if message is not None:
            told = JobEvent(at=now, kind=LEFT_OUT, message=message, replica=replica, attempt=attempt)
            events = (*events, told)
        return dataclasses.replace(
            reading, evaluations=evaluations, samples=samples, steps=steps, events=events
        )

    def _message(self, whose: Whose, left_out: int) -> str | None:
        key = whose.run, whose.pod
        told_at, count = self._told.get(key, (-TELL_SECONDS, 0))
        count += left_out
        if not count:
            return None
        if self._clock() - told_at < TELL_SECONDS:
            self._told[key] = told_at, count
            return None
        self._told[key] = self._clock(), 0
        return f"{count} lines are not kept: there were too many at once"

    def forget(self, whose: Whose) -> None:
        """Forget a replica that is gone."""
        self._told.pop((whose.run, whose.pod), None)


def _some(what: tuple[T, ...], room: int) -> tuple[tuple[T, ...], int]:
    taken = what[:room]
    return taken, room - len(taken)
