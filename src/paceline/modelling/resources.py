"""A job reduced to what decides its speed: groups of trainers, and the resources that their steps draw on.

A step begins with the time that its trainer spends alone, followed by one phase after the other. In a phase
a trainer makes all its visits at once, for instance one to each parameter server, and waits for the last. A
visit draws on all its resources at once: the bytes of an answer flow through both links while the server
works on the rest. A visit therefore takes as long as the slowest of its resources.

Every resource is a token bucket. It refills at its rate up to its burst, and a visit that draws more than is
there waits for the rest. A CPU quota is a token bucket that the kernel fills every 100 ms
(``scheduler/sched-bwc``); a link shaped by ``tbf`` is another. A bucket with a burst of 0 serves all visits
in turn at its rate: cores that processes share, or an unshaped link.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Something that trainers draw on. Its units are core seconds, bytes or batches.

    Attributes:
        name: the name shown to users.
        rate: units a second, above 0; infinite: a visit takes its time, but never waits for another.
        peak: the most units a second that a single visit can draw: 1 of several cores, for one thread.
        burst: units that are available at once after a rest.
        copies: the number of equal copies. The trainers of a group are spread over them in turn, so each
            trainer has its own copy if there are as many copies as trainers.
    """

    name: str
    rate: float
    peak: float = math.inf
    burst: float = 0.0
    copies: int = 1

    def __post_init__(self) -> None:
        if not (self.rate > 0 and self.peak > 0 and self.burst >= 0 and math.isfinite(self.burst)):
            raise ValueError(f"{self.name}: rate and peak are above 0, and burst is at least 0 and finite")
        if self.copies < 1:
            raise ValueError(f"{self.name}: at least one copy")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrainerGroup:
    """Trainers that are alike.

    Attributes:
        name: the name shown to users.
        trainers: the number of trainers, at least 1.
        steps_in_flight: the number of steps that each trainer has under way at once.
        own_seconds: the part of a step in which its trainer draws on no resource.
        phases: the phases of a step, one after the other. A phase consists of visits made side by side, and
            a visit maps the names of resources to the units that it draws.
        computes_in: the index of the phase in which the trainer computes, where a slow trainer takes longer;
            None: no phase.
    """

    name: str
    trainers: int
    steps_in_flight: int = 1
    own_seconds: float = 0.0
    phases: tuple[tuple[Mapping[str, float], ...], ...]
    computes_in: int | None = None

    def __post_init__(self) -> None:
        draws = [units for phase in self.phases for visit in phase for units in visit.values()]
        if self.trainers < 1 or self.steps_in_flight < 1:
            raise ValueError(f"{self.name}: at least one trainer, and one step")
        if not all(units >= 0 and math.isfinite(units) for units in (self.own_seconds, *draws)):
            raise ValueError(f"{self.name}: seconds and units are at least 0 and finite")
        if self.own_seconds <= 0 and not any(draws):
            raise ValueError(f"{self.name}: a step takes no time")

    def check(self, names: Collection[str]) -> None:
        """Check that every resource that a step draws on exists.

        Raises:
            ValueError: a resource is missing.
        """
        asked = {name for phase in self.phases for visit in phase for name in visit}
        if missing := sorted(asked.difference(names)):
            raise ValueError(f"{self.name} draws on {', '.join(missing)}, which is not there")


def drawn_by(phase: Sequence[Mapping[str, float]]) -> dict[str, tuple[float, float]]:
    """Return for each resource the units that all visits of a phase draw, and those of the largest visit."""
    found: dict[str, tuple[float, float]] = {}
    for visit in phase:
        for name, units in visit.items():
            if units > 0:
                total, most = found.get(name, (0.0, 0.0))
                found[name] = (total + units, max(most, units))
    return found
