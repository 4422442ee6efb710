"""Scales: where values stand on an axis, and which of them are written beside it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from paceline.surfaces.reports import texts

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
#: Values that differ by less, or by a smaller part of them, are the same on a chart.
_LEAST, _LEAST_PART = 1e-9, 1e-9
_MOST_PLACES = 12


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The values of an axis.

    Attributes:
        low, high: the values at its ends; ``low`` is the larger one where values go down or to the left.
        ticks: values that are written beside it, with their texts.
        name: what the values are, with their unit.
        has_rules: whether a line is drawn through the chart at each tick.
    """

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()
    name: str = ""
    has_rules: bool = True

    def part(self, value: float) -> float:
        """Return where a value stands, from 0 at ``low`` to 1 at ``high``; the ends hold what lies beyond."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def between(low: float, high: float, name: str = "", *, shown: Callable[[float], str] | None = None) -> Scale:
    """Return a scale with round ticks.

    Args:
        low: the value at its beginning.
        high: the value at its end; a little is added where both are the same.
        name: what the values are, with their unit.
        shown: writes a tick; None: with as many digits as tell ticks apart.
    """
    most = max(abs(low), abs(high))
    if high - low <= max(_LEAST_PART * most, _LEAST):
        room = 0.05 * most if most > _LEAST else 0.5
        low, high = low - room, high + room
    values = ticks(low, high)
    written = [shown(value) for value in values] if shown else labels(values)
    return Scale(low=low, high=high, ticks=tuple(zip(values, written, strict=True)), name=name)


def up_to(most: float, name: str = "", *, shown: Callable[[float], str] | None = None) -> Scale:
    """Return a scale from 0 to a little above the most (see `between`)."""
    return between(0.0, most * 1.05 if 0 < most < math.inf else 1.0, name, shown=shown)


def places(names: Sequence[str], name: str = "") -> Scale:
    """Return a scale from left to right on which each name has a place of width 1: the first from 0 to 1."""
    ticks_ = tuple((place + 0.5, each) for place, each in enumerate(names))
    return Scale(low=0.0, high=float(max(1, len(names))), ticks=ticks_, name=name, has_rules=False)


def rows(names: Sequence[str]) -> Scale:
    """Return a scale downwards on which each name has a row of height 1: the first from 0 to 1."""
    return dataclasses.replace(places(names), low=float(max(1, len(names))), high=0.0)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return about so many round numbers between two."""
    if not 0 < high - low < math.inf:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in _STEPS if power * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def labels(values: Sequence[float]) -> list[str]:
    """Return numbers as text, all with the fewest places that tell them apart: ``2.5``, ``1 500``."""
    for count in range(_MOST_PLACES):
        if all(math.isclose(round(each, count), each, rel_tol=1e-12) for each in values):
            return [
                f"{round(each, count) + 0.0:,.{count}f}".replace(",", "\N{NO-BREAK SPACE}") for each in values
            ]
    return [f"{each:.4g}" for each in values]


def seconds(length: float) -> tuple[float, str]:
    """Return what to divide seconds by on an axis of such a length, and the unit that they then have."""
    if length <= 600:
        return 1.0, "s"
    return (60.0, "min") if length <= 4 * 3600 else (3600.0, "h")


def since_start(length: float) -> tuple[float, Scale]:
    """Return what to divide seconds by, and the axis of time of a run of such a length in seconds."""
    time, unit = seconds(length)
    end = length / time
    return time, between(0.0, max(end, 1e-3), f"Time since the start ({unit})")


def of_bytes(highest: float) -> tuple[float, str]:
    """Return what to divide bytes by on an axis up to such a height, and the unit that they then have."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if highest >= 1024.0**power:
            return 1024.0**power, unit
    return 1.0, "B"


def whole(value: float) -> str:
    """Return a count as a tick has it: no line end tears it apart."""
    return texts.tied(texts.whole(value))
