"""For how much of the time replicas wait for cores, memory or disks, as the kernel says (``accounting/psi``).

A cgroup has pressures in version 2 alone, and only if the kernel counts them. What they say is evidence
beside other measurements: a quota that throttles a replica and its own threads put pressure on it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from paceline.diagnosing.cases import Case
from paceline.model.explanations.causes import Evidence
from paceline.model.measures.snapshots import ReplicaSnapshot


class Pressure(NamedTuple):
    """Something that the threads of a replica wait for.

    Attributes:
        waits: what they wait for, in words.
        field: the field of samples.
        share: the share of the time for which at least one thread of a replica waits; None: not measured.
    """

    waits: str
    field: str
    share: Callable[[ReplicaSnapshot], float | None]


CORES = Pressure("ready and without a core", "cpu_pressure_seconds", lambda each: each.cpu_pressure_share)
MEMORY = Pressure(
    "held up until memory is freed", "memory_pressure_seconds", lambda each: each.memory_pressure_share
)
DISKS = Pressure("held up by a disk", "io_pressure_seconds", lambda each: each.io_pressure_share)


def evidence(case: Case, pressure: Pressure, replicas: Sequence[ReplicaSnapshot]) -> Iterator[Evidence]:
    """Yield for how much of the time the replica waits that waits longest; nothing if it was not measured."""
    measured = [(share, each) for each in replicas if (share := pressure.share(each)) is not None]
    if measured:
        share, worst = max(measured, key=lambda item: item[0])
        yield Evidence(
            text=f"at least one thread of {worst.replica} is {pressure.waits} for {min(share, 1.0):.0%} "
            "of the time",
            sources=(case.source(pressure.field, (worst,)),),
        )
