"""Adjustments: what a replica or host of a running job has for a limited time instead of what its spec says.

A resize with an end is an adjustment, and so is each cut of a probe. All adjustments end by themselves: the
process that asked for one may die, and does not have to restore anything.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Sequence

from paceline.model import quantities
from paceline.model.roles import ReplicaId


class Knob(enum.StrEnum):
    """What can be adjusted while a job runs."""

    CPU = "cpu"  # cores of a replica
    MEMORY = "memory"  # bytes of a replica
    LINK = "link"  # bits a second of an emulated host, each way
    WEIGHT = "weight"  # the factor on its ordinary share of cores that others want, too
    PAUSE = "pause"  # 1: the processes of a replica stand still


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """An adjustment.

    Attributes:
        knob: what is adjusted.
        target: the replica, such as ``ps-0``, or the emulated host.
        value: the adjusted value; its unit follows from the knob.
        until: when it ends (Unix seconds).
    """

    knob: Knob
    target: str
    value: float
    until: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What a replica may take; None: any amount.

    Attributes:
        weight: the factor on its ordinary share of cores that others want, too.
        is_paused: whether its processes stand still.
    """

    replica: ReplicaId
    cpu_cores: float | None = None
    memory_bytes: int | None = None
    weight: float = 1.0
    is_paused: bool = False


def merged(known: Sequence[Adjustment], new: Iterable[Adjustment]) -> tuple[Adjustment, ...]:
    """Return known and new adjustments; a new one replaces a known one of the same knob and target."""
    found = {(each.knob, each.target): each for each in (*known, *new)}
    return tuple(found.values())


def current(known: Sequence[Adjustment], now: float) -> tuple[Adjustment, ...]:
    """Return the adjustments that have not ended at ``now`` (Unix seconds)."""
    return tuple(each for each in known if each.until > now)


def value(known: Iterable[Adjustment], knob: Knob, target: object) -> float | None:
    """Return the adjusted value of a knob of a target; None: it is as its spec says."""
    return next((each.value for each in known if each.knob is knob and each.target == str(target)), None)


def sentence(adjustment: Adjustment, now: float) -> str:
    """Return for users what an adjustment does, and how much longer from ``now`` (Unix seconds)."""
    span = quantities.format_seconds(max(0.0, adjustment.until - now))
    return f"{adjustment.target} {_has(adjustment)} for {span}"


def ended(adjustment: Adjustment) -> str:
    """Return for users that an adjustment has ended."""
    return f"{adjustment.target} has the {_WHAT[adjustment.knob]} again that its job says"


def _has(adjustment: Adjustment) -> str:
    match adjustment.knob:
        case Knob.CPU:
            return f"has {quantities.quantity_cores(adjustment.value)} CPU"
        case Knob.MEMORY:
            return f"has {quantities.format_bytes(adjustment.value)} of memory"
        case Knob.LINK:
            return f"has a link of {adjustment.value / 1e6:.3g} Mbit"
        case Knob.WEIGHT:
            return f"has {adjustment.value:g} times its share of cores that others want, too"
    return "stands still"


_WHAT = {
    Knob.CPU: "CPU",
    Knob.MEMORY: "memory",
    Knob.LINK: "link",
    Knob.WEIGHT: "share of cores",
    Knob.PAUSE: "pace",
}
