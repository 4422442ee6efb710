"""Thresholds of the rules: numbers with a unit, a meaning and a source, which a site can set.

A module declares each number that it compares with as a constant::

    FULL = Threshold("links.full", 0.5, Unit.SHARE, means="...", source="...")

and reads it from the case: ``case.value(FULL)``. So one case is judged by one set of numbers, and rules stay
pure functions. A site sets numbers by their names (`services.observing.site_thresholds`).
"""

from __future__ import annotations

import dataclasses
import enum
import math


class Unit(enum.StrEnum):
    """The unit of a threshold."""

    SHARE = "share"  # of a whole, from 0 to 1
    TIMES = "times"  # a ratio: as many times as something else
    SECONDS = "seconds"
    COUNT = "count"
    CORES = "cores"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes/s"
    PER_SECOND = "1/s"


@dataclasses.dataclass(frozen=True, slots=True)
class Threshold:
    """A number that rules compare with.

    Attributes:
        name: the name by which a site sets it: the module and the constant, such as ``links.full``.
        default: the number unless a site sets another one.
        unit: its unit.
        means: what is so from this number on, or below it.
        source: where the number is from: a measurement, a paper, a program; empty: own reasoning.
    """

    name: str
    default: float
    unit: Unit
    _: dataclasses.KW_ONLY
    means: str
    source: str = ""

    def __post_init__(self) -> None:
        refusal = self.refusal(self.default)
        if refusal is not None:
            raise ValueError(f"{self.name}: {refusal}")

    def refusal(self, value: float) -> str | None:
        """Return why a value cannot be this number; None: it can."""
        if not math.isfinite(value) or value < 0:
            return "a number that is at least 0 and finite is needed"
        if self.unit is Unit.SHARE and value > 1:
            return "a share is at most 1"
        if self.unit is Unit.COUNT and value != int(value):
            return "a count is a whole number"
        return None
