"""How much of what replicas say is taken: of each replica, of a run, and of a namespace.

What a replica says is written by a script of someone. Honest ones say a line or two a second, or one for
each worker of a coordinator; what is far beyond that would fill the store that all share, so it is left out,
counted and told. Bytes are not left out but read later: they wait with the agent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from paceline.model.jobs.runs import JobEvent
from paceline.model.roles import ReplicaId
from paceline.sources.spools import SpoolReading

#: The kind of the event that says that something was left out, and how often a replica gets one.
LEFT_OUT, TELL_SECONDS = "left-out", 600.0
#: More are not remembered once they are full again.
MOST_BUCKETS = 20_000

T = TypeVar("T")


class Rate(NamedTuple):
    """So many a second in the long run, and so many at once: what was written while no process read."""

    per_second: float
    at_once: float


@dataclasses.dataclass(frozen=True, slots=True)
class IntakeLimits:
    """What is taken, by whose it is: of a replica, of a run, of a namespace."""

    replica: Rate
    run: Rate
    namespace: Rate

    def __iter__(self) -> Iterator[Rate]:
        return iter((self.replica, self.run, self.namespace))


#: Samples, reports of steps and evaluations.
RECORDS = IntakeLimits(Rate(500, 500_000), Rate(10_000, 10_000_000), Rate(50_000, 50_000_000))
#: What is kept as text.
EVENTS = IntakeLimits(Rate(0.1, 500), Rate(2, 50_000), Rate(10, 200_000))
BYTES = IntakeLimits(Rate(1 << 20, 1 << 28), Rate(1 << 23, 1 << 30), Rate(1 << 25, 1 << 32))


class Whose(NamedTuple):
    """Whose words these are."""

    namespace: str
    run: str
    pod: str

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """Return what stands for the replica, the run and the namespace."""
        return (self.run, self.pod), (self.run,), (self.namespace, "")


class IntakeBudget:
    """What may still be taken, of any number of replicas.

    Args:
        limits: how much.
        clock: seconds that do not go back.
    """

    def __init__(self, limits: IntakeLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._left: dict[tuple[str, ...], tuple[float, float]] = {}

    def left(self, whose: Whose) -> int:
        """Return how much may be taken now."""
        return max(0, int(min(self._level(key, rate) for key, rate in self._pairs(whose))))

    def take(self, whose: Whose, amount: int) -> None:
        """Note that so much was taken."""
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
    """Thins what replicas say where it is too much.

    Args:
        clock: seconds that do not go back.
        records: how many samples and reports are taken.
        events: how many events.
        sizes: how many bytes.
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
        """Whether more is to be read now."""
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
        """Return what is taken of a reading; an event at `now`, in Unix seconds, tells what is not."""
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
