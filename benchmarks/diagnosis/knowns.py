"""What is known of a healthy job from its own recording; faults are cut to measure by it."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping

from benchmarks.diagnosis import effects
from paceline.model.measures.recordings import Recording
from paceline.model.roles import Role
from paceline.model.variables.variable_plans import Plan


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A healthy job as it was measured.

    Attributes:
        rates: examples a second of each trainer.
        cores: that a replica of a role used on average.
        memory_bytes: the most that a replica of a role used.
        bits_per_second: that a replica of a role received or sent on average, the larger.
        plan: of its variables, with their traffic.
    """

    rates: Mapping[str, float]
    cores: Mapping[Role, float]
    memory_bytes: Mapping[Role, int]
    bits_per_second: Mapping[Role, float]
    plan: Plan | None

    @property
    def speed(self) -> float:
        """Return the examples a second of all trainers together."""
        return sum(self.rates.values())

    @property
    def rate(self) -> float:
        """Return the examples a second of one trainer."""
        return statistics.fmean(self.rates.values())


def of(recording: Recording, since: float) -> Known:
    """Return what a recording says of its job from a moment (Unix seconds) on."""
    cores, memory, network = {}, {}, {}
    for role in {each.role for each in recording.run.spec.roles}:
        own = effects.samples_of(recording, role, since)
        used = [effects.cpu(samples) for samples in own.values()]
        cores[role] = statistics.fmean(each for each in used if each is not None) if used else 0.0
        memory[role] = max((each.memory_bytes or 0 for some in own.values() for each in some), default=0)
        network[role] = statistics.fmean(map(effects.bits_per_second, own.values())) if own else 0.0
    return Known(
        rates=effects.rates(recording, since),
        cores=cores,
        memory_bytes=memory,
        bits_per_second=network,
        plan=recording.plan,
    )
