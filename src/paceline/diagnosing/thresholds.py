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
from collections.abc import Mapping


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
        above, below: a site's number lies between these two, which are not allowed themselves.
    """

    name: str
    default: float
    unit: Unit
    _: dataclasses.KW_ONLY
    means: str
    source: str = ""
    above: float = 0.0
    below: float = math.inf

    def __post_init__(self) -> None:
        refusal = self.refusal(self.default)
        if refusal is not None:
            raise ValueError(f"{self.name}: {refusal}")

    def value(self, settings: Mapping[str, float]) -> float:
        """Return the number that a site has set, by the name of the threshold, or else the default."""
        return settings.get(self.name, self.default)

    def refusal(self, value: float) -> str | None:
        """Return why a value cannot be this number; None: it can."""
        if not self.above < value < self.below:
            limit = "" if math.isinf(self.below) else f" and below {self.below:g}"
            return f"a number above {self.above:g}{limit} is needed"
        if self.unit is Unit.SHARE and value > 1:
            return "a share is at most 1"
        if self.unit in (Unit.COUNT, Unit.BYTES) and value != int(value):
            return "a whole number is needed"
        return None
