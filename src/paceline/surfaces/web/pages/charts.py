"""Where the lines and dots of a chart go: templates draw them as SVG, so they have the page's colours."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

WIDTH, HEIGHT = 760.0, 280.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 66.0, 14.0, 12.0, 44.0
#: Of a small chart in a row of a table.
STRIP_WIDTH, STRIP_HEIGHT = 180.0, 20.0
_EDGE = 6.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A point of a curve.

    Attributes:
        kind: the place of its name among the kinds.
        said: what it says when somebody points at it.
    """

    x: float
    y: float
    kind: int
    said: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A curve with its band over values that follow each other.

    Attributes:
        line, band: points as SVG has them.
        across, up: the marks of the axes, each with what stands there.
        level: the height of what was measured.
        marks: places of values that stand out, by what they are.
        kinds: what the colours of dots mean.
    """

    line: str
    band: str
    dots: tuple[Dot, ...]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]
    level: float
    marks: Mapping[str, float]
    kinds: tuple[str, ...]
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    top: float = _TOP
    bottom: float = HEIGHT - _BOTTOM
    width: float = WIDTH
    height: float = HEIGHT


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A value of a curve: its middle, between which that lies, and of which kind it is."""

    label: str
    middle: float
    low: float
    high: float
    kind: str


def curve(
    places: Sequence[Place], *, level: float, marks: Mapping[str, int], shown: Callable[[float], str]
) -> Curve:
    """Return a curve.

    Args:
        places: its values, at least one.
        level: what was measured.
        marks: the numbers of values that stand out, by what they are.
        shown: writes a height.
    """
    # A band that reaches far beyond everything would press the curve itself flat.
    most = max(level, *(min(each.high, 2.5 * each.middle) for each in places)) * 1.05
    steps = ticks(most)
    top = max(most, steps[-1])
    room = WIDTH - _LEFT - _RIGHT
    kinds = tuple(dict.fromkeys(each.kind for each in places))

    def x(place: int) -> float:
        return _LEFT + room * (place + 0.5) / len(places)

    def y(value: float) -> float:
        return max(_TOP, HEIGHT - _BOTTOM - (HEIGHT - _BOTTOM - _TOP) * value / top)

    upper = [(x(place), y(each.high)) for place, each in enumerate(places)]
    lower = [(x(place), y(each.low)) for place, each in enumerate(places)]
    middle = [(x(place), y(each.middle)) for place, each in enumerate(places)]
    return Curve(
        line=_points(middle),
        band=_points([*upper, *reversed(lower)]),
        dots=tuple(
            Dot(
                x=across, y=up, kind=kinds.index(each.kind),
                said=f"{each.label}: {shown(each.middle)} ({shown(each.low)} to {shown(each.high)})",
            )
            for (across, up), each in zip(middle, places, strict=True)
        ),
        across=tuple((x(place), each.label) for place, each in enumerate(places)),
        up=tuple((y(value), shown(value)) for value in steps),
        level=y(level),
        marks={name: x(place) for name, place in marks.items()},
        kinds=kinds,
    )  # fmt: skip


def ticks(most: float, count: int = 5) -> list[float]:
    """Return about so many round numbers from 0 to a little below, or at, the most."""
    if not 0 < most < math.inf:
        return [0.0]
    rough = most / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
    return [step * number for number in range(int(most / step) + 1)]


@dataclasses.dataclass(frozen=True, slots=True)
class Strip:
    """Several rows on one scale, each a chart of its own in a table.

    Attributes:
        low, high: the ends of the scale.
        is_logarithmic: whether it is one of ratios.
    """

    low: float
    high: float
    is_logarithmic: bool = False

    @classmethod
    def of(cls, values: Sequence[float], *, is_logarithmic: bool = False) -> Strip:
        """Return the strip that holds some values; of ratios 1, of amounts 0 is on it, too."""
        if is_logarithmic:
            known = [each for each in values if 0 < each < math.inf]
            return cls(min((1 / 1.2, *known)), max((1.2, *known)), is_logarithmic=True)
        return cls(0.0, max((1e-9, *values)))

    def x(self, value: float) -> float:
        """Return where a value is."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.is_logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return round(_EDGE + (STRIP_WIDTH - 2 * _EDGE) * (at - low) / (high - low), 1)


def _points(found: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in found)
