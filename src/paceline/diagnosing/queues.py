"""A job as a closed network of queues: trainers take turns at parameter servers and links.

Each trainer computes for a while by itself, then visits all stations at once (the CPU of each parameter
server, the link of each host), waits at each for those before it, and begins anew when the slowest has served
it. From how long a step takes at each station follows the throughput for any number of trainers: mean value
analysis (Reiser and Lavenberg 1980) with stations that are visited side by side instead of one after the
other, and the bounds and the knee of operational analysis (Denning and Buzen 1978).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

_HALVINGS = 40


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """The network; times are for one step of one trainer.

    Attributes:
        trainers: how many, at least 1.
        think_seconds: what a trainer spends by itself.
        stations: seconds that a step takes at each, without waiting.
    """

    trainers: int
    think_seconds: float
    stations: Mapping[str, float]

    @property
    def least_seconds(self) -> float:
        """Return how long a step of a trainer alone takes."""
        return self.think_seconds + max(self.stations.values(), default=0.0)

    @property
    def busiest(self) -> str | None:
        """Return the station that saturates first; None: there is none."""
        return max(self.stations, key=self.stations.__getitem__, default=None)

    @property
    def knee(self) -> float | None:
        """Return from how many trainers on the busiest station bounds the throughput."""
        longest = max(self.stations.values(), default=0.0)
        return self.least_seconds / longest if longest > 0 else None

    def steps_per_second(self) -> float:
        """Return the throughput of all trainers, with what they wait for each other.

        Who needs a station longest meets most others there, too, so that is the one which is waited for.
        """
        longest = max(self.stations.values(), default=0.0)
        waiting = throughput = 0.0
        for trainers in range(1, self.trainers + 1):
            seconds = longest * (1 + waiting)
            throughput = trainers / max(self.think_seconds + seconds, 1e-12)
            waiting = throughput * seconds
        return throughput

    def most_steps_per_second(self) -> float:
        """Return the bound that no waiting at all would allow."""
        longest = max(self.stations.values(), default=0.0)
        alone = self.trainers / max(self.least_seconds, 1e-12)
        return min(alone, 1 / longest) if longest > 0 else alone


def fitted(
    trainers: int, stations: Mapping[str, float], steps_per_second: float, *, least_think_seconds: float = 0.0
) -> Queues:
    """Return the network that has a measured throughput: its think time follows from that.

    Where trainers and stations alone take longer than was measured, its throughput is less.

    Args:
        trainers: how many.
        stations: seconds of a step at each.
        steps_per_second: of all trainers, above 0.
        least_think_seconds: what a trainer spends by itself in any case.
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
