"""A job as a closed network of queues: trainers take turns at parameter servers and links.

Each trainer computes for a while by itself, then visits all stations at once (the CPU of each parameter
server, the link of each host), waits at each station for the trainers before it, and begins again when the
slowest station has served it. The time that a step takes at each station determines the throughput for any
number of trainers. The model uses mean value analysis (Reiser and Lavenberg 1980) with stations that are
visited in parallel instead of one after the other, and the bounds and the knee of operational analysis
(Denning and Buzen 1978).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

_HALVINGS = 40


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """A closed network of queues; times are for one step of one trainer.

    Attributes:
        trainers: the number of trainers, at least 1.
        think_seconds: the time that a trainer spends by itself.
        stations: maps each station to the seconds that a step takes there, without waiting.
    """

    trainers: int
    think_seconds: float
    stations: Mapping[str, float]

    @property
    def least_seconds(self) -> float:
        """The duration of a step if there is only one trainer."""
        return self.think_seconds + max(self.stations.values(), default=0.0)

    @property
    def busiest(self) -> str | None:
        """The station that saturates first; None: there is no station."""
        return max(self.stations, key=self.stations.__getitem__, default=None)

    @property
    def knee(self) -> float | None:
        """The number of trainers from which on the busiest station limits the throughput; None: no limit."""
        longest = max(self.stations.values(), default=0.0)
        return self.least_seconds / longest if longest > 0 else None

    def steps_per_second(self) -> float:
        """Return the throughput of all trainers, including the time that they wait for each other.

        Trainers wait for the station at which a step takes longest: most other trainers are there too.
        """
        longest = max(self.stations.values(), default=0.0)
        waiting = throughput = 0.0
        for trainers in range(1, self.trainers + 1):
            seconds = longest * (1 + waiting)
            throughput = trainers / max(self.think_seconds + seconds, 1e-12)
            waiting = throughput * seconds
        return throughput

    def most_steps_per_second(self) -> float:
        """Return the upper bound of the throughput, without any waiting."""
        longest = max(self.stations.values(), default=0.0)
        alone = self.trainers / max(self.least_seconds, 1e-12)
        return min(alone, 1 / longest) if longest > 0 else alone


def fitted(
    trainers: int, stations: Mapping[str, float], steps_per_second: float, *, least_think_seconds: float = 0.0
) -> Queues:
    """Return the network that has the measured throughput; its think time is computed from it.

    If the least think time and the stations alone take longer than was measured, the throughput of the
    network is lower than the measured one.

    Args:
        trainers: the number of trainers.
        stations: maps each station to the seconds of a step there.
        steps_per_second: the throughput of all trainers, above 0.
        least_think_seconds: the time that a trainer spends by itself in any case.
    """
    made = functools.partial(Queues, trainers=trainers, stations=stations)
    low, high = least_think_seconds, max(least_think_seconds, trainers / steps_per_second)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if made(think_seconds=middle).steps_per_second() > steps_per_second:
            low = middle
        else:
            high = middle
    return made(think_seconds=low)
