"""What a job is where only its speed matters: crews of trainers, and the resources that steps draw on.

A step is what its trainer does alone, then one phase after the other. In a phase a trainer makes all of its
visits at once, one to each parameter server for instance, and waits for the last of them. A visit draws on
all of its resources at once: the bytes of an answer flow through both links while the server works on the
rest, so a visit takes as long as the slowest of them.

Every resource is a token bucket. It refills with its rate up to its burst, and who draws more than is there
waits for the rest. A CPU quota is one, that the kernel fills every 100 ms (``scheduler/sched-bwc``), and so
is a link that is shaped by ``tbf``. With a burst of 0 it is what serves all in turn at its rate: cores that
processes share, a link as it is.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Something that trainers share. Units are seconds of a core, or bytes.

    Attributes:
        name: as people call it.
        rate: units a second, above 0.
        peak: units a second that one visit alone can draw: 1 core of several, for one thread.
        burst: units that are there at once after a rest.
        copies: how many of the like there are, over which the trainers of a crew are spread in turn: each has
            one of its own if there are as many of both.
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
        name: as people call it.
        trainers: how many, at least 1.
        steps_in_flight: that each of them has at once.
        own_seconds: of a step in which its trainer draws on nothing that is limited.
        phases: of a step, one after the other; each of visits side by side, each of them the units that it
            draws on resources, by their names.
        computes_in: the phase in which its trainer computes: a slow one takes longer there; None: in none.
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
        """Check that all that it draws on is there.

        Raises:
            ValueError: something is not.
        """
        asked = {name for phase in self.phases for visit in phase for name in visit}
        if missing := sorted(asked.difference(names)):
            raise ValueError(f"{self.name} draws on {', '.join(missing)}, which is not there")


def drawn_by(phase: Sequence[Mapping[str, float]]) -> dict[str, tuple[float, float]]:
    """Return by resource the units that all visits of a phase draw, and the most that one of them does."""
    found: dict[str, tuple[float, float]] = {}
    for visit in phase:
        for name, units in visit.items():
            if units > 0:
                total, most = found.get(name, (0.0, 0.0))
                found[name] = (total + units, max(most, units))
    return found
