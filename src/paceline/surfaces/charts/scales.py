"""Scales, which place values on an axis and choose its labelled ticks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from paceline.surfaces.reports import texts

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
#: Values that differ by less than this absolute or relative amount are the same on a chart.
_LEAST, _LEAST_PART = 1e-9, 1e-9
_MOST_PLACES = 12


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The values of an axis.

    Attributes:
        low, high: the values at its ends; ``low`` is the larger if values increase downwards or leftwards.
        ticks: the labelled values, with their labels.
        name: the name of the quantity, with its unit.
        has_rules: whether a grid line is drawn through the chart at each tick.
    """

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()
    name: str = ""
    has_rules: bool = True

    def part(self, value: float) -> float:
        """Return the position of a value: 0 at ``low``, 1 at ``high``; values beyond are at the ends."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def between(low: float, high: float, name: str = "", *, shown: Callable[[float], str] | None = None) -> Scale:
    """Return a scale with round ticks.

    Args:
        low: the value at the beginning.
        high: the value at the end; the scale is widened a little if both are the same.
        name: the name of the quantity, with its unit.
        shown: formats a tick; None means with as many digits as distinguish the ticks.
    """
    most = max(abs(low), abs(high))
    if high - low <= max(_LEAST_PART * most, _LEAST):
        room = 0.05 * most if most > _LEAST else 0.5
        low, high = low - room, high + room
    values = ticks(low, high)
    written = [shown(value) for value in values] if shown else labels(values)
    return Scale(low=low, high=high, ticks=tuple(zip(values, written, strict=True)), name=name)


def up_to(most: float, name: str = "", *, shown: Callable[[float], str] | None = None) -> Scale:
    """Return a scale from 0 to a little above the largest value (see `between`)."""
    return between(0.0, most * 1.05 if 0 < most < math.inf else 1.0, name, shown=shown)


def places(names: Sequence[str], name: str = "") -> Scale:
    """Return a horizontal scale on which each name has a place of width 1; the first is from 0 to 1."""
    ticks_ = tuple((place + 0.5, each) for place, each in enumerate(names))
    return Scale(low=0.0, high=float(max(1, len(names))), ticks=ticks_, name=name, has_rules=False)


def rows(names: Sequence[str]) -> Scale:
    """Return a downward scale on which each name has a row of height 1; the first is from 0 to 1."""
    return dataclasses.replace(places(names), low=float(max(1, len(names))), high=0.0)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return about ``count`` round numbers between two numbers."""
    if not 0 < high - low < math.inf:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in _STEPS if power * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def labels(values: Sequence[float]) -> list[str]:
    """Return numbers as text, such as ``1 500``, all with the fewest decimals that show them exactly."""
    for count in range(_MOST_PLACES):
        if all(math.isclose(round(each, count), each, rel_tol=1e-12) for each in values):
            return [
                f"{round(each, count) + 0.0:,.{count}f}".replace(",", "\N{NO-BREAK SPACE}") for each in values
            ]
    return [f"{each:.4g}" for each in values]


def seconds(length: float) -> tuple[float, str]:
    """Return the divisor and the unit of time for an axis of this length in seconds."""
    if length <= 600:
        return 1.0, "s"
    return (60.0, "min") if length <= 4 * 3600 else (3600.0, "h")


def since_start(length: float) -> tuple[float, Scale]:
    """Return the divisor of seconds, and the time axis, for a run of this length in seconds."""
    time, unit = seconds(length)
    end = length / time
    return time, between(0.0, max(end, 1e-3), f"Time since the start ({unit})")


def of_bytes(highest: float) -> tuple[float, str]:
    """Return the divisor and the unit of bytes for an axis up to this height."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if highest >= 1024.0**power:
            return 1024.0**power, unit
    return 1.0, "B"


def whole(value: float) -> str:
    """Return a count as a tick's label, which line breaks do not split."""
    return texts.tied(texts.whole(value))
