"""The model in closed form, for like trainers at resources that serve one step after the other.

Before the variables of a job are known, its costs cannot be calibrated. How long a step keeps each resource
busy can be measured all the same, and is enough for the equation of a step (see `paceline.modelling`). With
one group of trainers and no bursts, `flows.flow` solves::

    T = own_seconds + s * (1 + c * u / 2 / (1 - c * u)),   X = n / T,   u = X * s <= 1,   c = 1 - 1 / n

Here s is the time at the station that a step keeps busy longest, u its use and n the number of trainers. This
is a quadratic equation of u, so a fit or a gain takes microseconds. The knee is that of operational analysis
(Denning and Buzen 1978).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

#: In place of a step that takes no time.
_LEAST_SECONDS = 1e-12


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """A closed network of queues; times are for one step of one trainer.

    Attributes:
        trainers: the number of trainers, at least 1.
        own_seconds: the time that a trainer spends by itself.
        stations: maps each station to the seconds that a step takes there, without waiting. A step is at all
            stations at once.
    """

    trainers: int
    own_seconds: float
    stations: Mapping[str, float]

    @property
    def longest_seconds(self) -> float:
        """The time of a step at the station where it takes longest, without waiting."""
        return max(self.stations.values(), default=0.0)

    @property
    def least_seconds(self) -> float:
        """The duration of a step if there is only one trainer."""
        return self.own_seconds + self.longest_seconds

    @property
    def knee(self) -> float | None:
        """The number of trainers from which on the busiest station limits the throughput; None: no limit."""
        return self.least_seconds / self.longest_seconds if self.longest_seconds > 0 else None

    def steps_per_second(self) -> float:
        """Return the throughput of all trainers, including the time that they wait for each other."""
        knee, others = self.knee, self.trainers - 1
        if knee is None:
            return self.trainers / max(self.own_seconds, _LEAST_SECONDS)
        root = math.sqrt((knee - others) ** 2 + 2 * others)
        return min(1.0, 2 * self.trainers / (knee + others + root)) / self.longest_seconds

    def most_steps_per_second(self) -> float:
        """Return the upper bound of the throughput, without any waiting."""
        alone = self.trainers / max(self.least_seconds, _LEAST_SECONDS)
        return min(alone, 1 / self.longest_seconds) if self.longest_seconds > 0 else alone


def fitted(
    trainers: int, stations: Mapping[str, float], steps_per_second: float, *, least_own_seconds: float = 0.0
) -> Queues:
    """Return the network that has the measured throughput; its own seconds are computed from it.

    If the least own seconds and the stations alone take longer than was measured, the throughput of the
    network is lower than the measured one.

    Args:
        trainers: the number of trainers.
        stations: maps each station to the seconds of a step there.
        steps_per_second: the throughput of all trainers, above 0.
        least_own_seconds: the time that a trainer spends by itself in any case.
    """
    longest = max(stations.values(), default=0.0)
    # Of the other trainers, this share of a trainer's time is at the station.
    others = (1 - 1 / trainers) * min(1.0, steps_per_second * longest)
    own = trainers / steps_per_second - longest * (1 + others / 2 / (1 - others))
    return Queues(trainers=trainers, own_seconds=max(least_own_seconds, own), stations=stations)
