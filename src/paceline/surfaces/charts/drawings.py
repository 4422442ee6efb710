"""Charts between two scales, as positions on a canvas; the templates in ``charts.html`` turn them into SVG.

Positions are on a canvas of ``Chart.width`` times ``Chart.height``, from its upper left corner. Shapes have
classes instead of colours: for example, ``tint-blue`` selects a colour and ``dash-long`` a line style.
"""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from paceline.surfaces.charts.scales import Scale

#: The widths of a chart that fills half of a page, most of it, or all of it.
WIDTH, MIDDLE, WIDE = 480.0, 760.0, 1000.0
HEIGHT = 230.0
#: The height of each row in a chart whose vertical axis has named rows.
ROW_HEIGHT = 22.0
_FONT = 11.0
_GAP, _RIGHT = 7.0, 14.0
_TOP, _TOP_NAMED, _BOTTOM, _BOTTOM_NAMED = 8.0, 24.0, 22.0, 40.0
#: The least gap between the labels of ticks; labels that would be closer are left out.
_LEAST_GAP = 8.0
#: If a line has gaps between all its points, at most this many of them are drawn as dots.
_MOST_ALONE = 60


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Polyline:
    """A line through points; None is a gap. ``key`` is its text in the legend."""

    points: Sequence[tuple[float, float | None]]
    style: str
    key: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """The area between two heights at each place; None is a gap."""

    points: Sequence[tuple[float, float | None, float | None]]
    style: str
    key: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """Boxes of one style, each with its horizontal start and end and its vertical start and end."""

    boxes: Sequence[tuple[float, float, float, float]]
    style: str
    key: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """Points of one style, each with a text that appears when a user points at it."""

    points: Sequence[tuple[float, float]]
    style: str
    key: str = ""
    said: Sequence[str] = ()
    radius: float = 4.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Words centred at a point."""

    at: tuple[float, float]
    text: str
    style: str = ""


Shape = Polyline | Area | Boxes | Dots | Words


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LegendKey:
    """An entry of the legend; ``shape`` is ``line``, ``area``, ``box`` or ``dot``."""

    shape: str
    style: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """An SVG path with its class."""

    d: str
    style: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A circle, or words, at a position of the canvas."""

    x: float
    y: float
    style: str
    text: str
    radius: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart in the form that templates draw: every number is a position on the canvas.

    Attributes:
        name: the title, which is also the description for screen readers.
        across, up: the positions of the ticks, with their labels.
        across_name, up_name: the names of the axes, with their units.
        rules: the grid lines at ticks, as one path.
        is_slanted: whether the labels below are written upwards, because they have no room side by side.
    """

    name: str
    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]
    across_name: str
    up_name: str
    rules: str
    paths: tuple[Path, ...]
    dots: tuple[Marker, ...]
    words: tuple[Marker, ...]
    keys: tuple[LegendKey, ...]
    is_slanted: bool = False


def chart(
    name: str,
    across: Scale,
    up: Scale,
    shapes: Iterable[Shape],
    *,
    width: float = WIDTH,
    height: float | None = None,
) -> Chart:
    """Return a chart.

    Args:
        name: the title of the chart.
        across: the scale from left to right.
        up: the scale upwards, or downwards if it is a scale of rows.
        shapes: the shapes, the lowest layer first.
        width: the width of the canvas.
        height: the height of the canvas; None means the height that the rows of ``up`` need, or `HEIGHT` if
            ``up`` has no rows.
    """
    left = 2 * _GAP + max((text_width(text) for _, text in up.ticks), default=0.0)
    right = width - _RIGHT
    is_slanted = _is_tight(across, right - left)
    bottom = _BOTTOM_NAMED if across.name else _BOTTOM
    if is_slanted:
        bottom += max(text_width(text) for _, text in across.ticks) - _FONT
    top = _TOP_NAMED if up.name else _TOP
    if height is None:
        is_rows = up.low > up.high
        height = top + bottom + ROW_HEIGHT * up.low if is_rows else HEIGHT
    plane = _Plane(across=across, up=up, left=left, right=right, top=top, bottom=height - bottom)
    items = list(shapes)
    rules = [f"M{_n(plane.x(at))} {_n(top)}V{_n(plane.bottom)}" for at, _ in across.ticks if across.has_rules]
    rules += [f"M{_n(left)} {_n(plane.y(at))}H{_n(right)}" for at, _ in up.ticks if up.has_rules]
    ticks = [(plane.x(at), text) for at, text in across.ticks]
    return Chart(
        name=name,
        width=width,
        height=round(height, 1),
        left=round(left, 1),
        right=right,
        top=top,
        bottom=round(plane.bottom, 1),
        across=tuple(ticks if is_slanted else _thinned(ticks, width)),
        up=tuple((plane.y(at), text) for at, text in up.ticks),
        across_name=across.name,
        up_name=up.name,
        rules="".join(rules),
        paths=tuple(path for each in items for path in _paths(plane, each)),
        dots=tuple(spot for each in items for spot in _dots(plane, each)),
        words=tuple(
            Marker(x=plane.x(each.at[0]), y=plane.y(each.at[1]), style=each.style, text=each.text)
            for each in items
            if isinstance(each, Words)
        ),
        keys=tuple(key for each in items for key in _keys(each)),
        is_slanted=is_slanted,
    )


def text_width(text: str) -> float:
    """Return the approximate width of a text on the canvas, for a wide font because no font is available."""
    return sum(_character_width(char) for char in text) * _FONT


def _character_width(char: str) -> float:
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if char in "ijlI.,:;'|! \N{NO-BREAK SPACE}()[]-f":
        return 0.37
    return 0.95 if char in "mwMW%@" else 0.64


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Plane:
    """The part of the canvas between the axes; it converts values of both scales to positions."""

    across: Scale
    up: Scale
    left: float
    right: float
    top: float
    bottom: float

    def x(self, value: float) -> float:
        return round(self.left + (self.right - self.left) * self.across.part(value), 1)

    def y(self, value: float) -> float:
        return round(self.bottom - (self.bottom - self.top) * self.up.part(value), 1)


def _is_tight(across: Scale, room: float) -> bool:
    """Return whether the names of places have no room side by side; numeric ticks are thinned instead."""
    if across.has_rules or not across.ticks:
        return False
    each = room / len(across.ticks)
    return max(text_width(text) for _, text in across.ticks) + _LEAST_GAP > each and each < 3 * _FONT


def _thinned(ticks: Sequence[tuple[float, str]], width: float) -> Iterator[tuple[float, str]]:
    """Yield the labels of ticks that have room; a label that the edge would cut off is moved inwards."""
    end = -_LEAST_GAP
    for at, text in ticks:
        half = text_width(text) / 2
        middle = max(half, min(at, width - half))
        if middle - half >= end + _LEAST_GAP:
            yield round(middle, 1), text
            end = middle + half


def _paths(plane: _Plane, shape: Shape) -> Iterator[Path]:
    if isinstance(shape, Polyline):
        d = "".join(
            _joined([(plane.x(x), plane.y(y)) for x, y in stretch]) for stretch in _stretches(shape.points)
        )
        if d:
            yield Path(d=d, style=f"line {shape.style}")
    elif isinstance(shape, Area):
        yield from _areas(plane, shape)
    elif isinstance(shape, Boxes) and shape.boxes:
        yield Path(d="".join(_box(plane, *box) for box in shape.boxes), style=f"box {shape.style}")


def _areas(plane: _Plane, shape: Area) -> Iterator[Path]:
    lows = _stretches([(x, None if high is None else low) for x, low, high in shape.points])
    highs = _stretches([(x, None if low is None else high) for x, low, high in shape.points])
    d = "".join(
        _joined([(plane.x(x), plane.y(y)) for x, y in [*high, *reversed(low)]]) + "z"
        for low, high in zip(lows, highs, strict=True)
    )
    if d:
        yield Path(d=d, style=f"area {shape.style}")


def _stretches(points: Iterable[tuple[float, float | None]]) -> list[list[tuple[float, float]]]:
    """Return the stretches of points without gaps."""
    stretches: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is None:
            stretches.append([])
        else:
            stretches[-1].append((x, y))
    return [each for each in stretches if each]


def _joined(points: Sequence[tuple[float, float]]) -> str:
    """Return a path through points; a single point becomes a short line, which round ends make visible."""
    (x, y), *rest = points
    start = f"M{_n(x)} {_n(y)}"
    return start + ("".join(f"L{_n(x)} {_n(y)}" for x, y in rest) or "h.1")


def _box(plane: _Plane, since: float, until: float, low: float, high: float) -> str:
    left, right = sorted((plane.x(since), plane.x(until)))
    top, bottom = sorted((plane.y(low), plane.y(high)))
    width, height = _n(right - left), _n(bottom - top)
    return f"M{_n(left)} {_n(top)}h{width}v{height}h-{width}z"


def _dots(plane: _Plane, shape: Shape) -> Iterator[Marker]:
    if isinstance(shape, Dots):
        said = shape.said or [""] * len(shape.points)
        for (x, y), text in zip(shape.points, said, strict=True):
            yield Marker(x=plane.x(x), y=plane.y(y), style=shape.style, text=text, radius=shape.radius)
    elif isinstance(shape, Polyline):
        stretches = _stretches(shape.points)
        if max(map(len, stretches), default=0) == 1:  # Isolated points make no visible line.
            for ((x, y),) in stretches[:_MOST_ALONE]:
                yield Marker(x=plane.x(x), y=plane.y(y), style=shape.style, text="", radius=3.0)


def _keys(shape: Shape) -> Iterator[LegendKey]:
    if not isinstance(shape, Words) and shape.key:
        kinds = {Polyline: "line", Area: "area", Boxes: "box", Dots: "dot"}
        yield LegendKey(shape=kinds[type(shape)], style=shape.style, text=shape.key)


def _n(value: float) -> str:
    """Return a number, rounded to a tenth, in as few characters as possible."""
    return f"{value:.1f}".removesuffix(".0").replace("-0.", "-.").removeprefix("0") or "0"
