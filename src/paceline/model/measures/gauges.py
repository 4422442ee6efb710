"""What a field of a measurement is: how its values are combined and how precisely they are stored.

A gauge is declared once, as an annotation of its field in `samples`. The tables of the store, its packed
blocks and the combination of intervals derive from it.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import typing
from collections.abc import Mapping


class Combining(enum.Enum):
    """How the values of several intervals become one."""

    #: They are added up; a value that was measured for a part of the time is scaled up to all of it.
    COUNT = "count"
    #: Their mean, weighted by time.
    MEAN = "mean"
    #: The last one that was measured.
    LATEST = "latest"
    #: The lengths of the intervals themselves.
    INTERVAL = "interval"


@dataclasses.dataclass(frozen=True, slots=True)
class GaugeSpec:
    """A measured field.

    Attributes:
        number: identifies the field in a block; it is never reused for another field.
        combining: how the values of several intervals become one.
        decimals: for a float, the unit is 10**-decimals; None: the field is an integer.
        unit_bits: for an integer, the unit is 2**unit_bits.
        digits: how many binary digits are kept; 0: all.
        exact_below: a column with a number between 0 and this one is stored exactly.
    """

    number: int
    combining: Combining = Combining.LATEST
    decimals: int | None = None
    unit_bits: int = 0
    digits: int = 0
    exact_below: float = 0.0


@functools.cache
def gauges(kind: type) -> Mapping[str, GaugeSpec]:
    """Return the gauges of a dataclass by field, in their order."""
    found: dict[str, GaugeSpec] = {}
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        for each in getattr(hint, "__metadata__", ()):
            if isinstance(each, GaugeSpec):
                found[name] = each
    return found
