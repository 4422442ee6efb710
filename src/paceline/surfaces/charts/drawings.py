"""Charts between two scales: what is drawn, and where. Templates make SVG of it (``charts.html``).

Places are on a canvas of ``Chart.width`` times ``Chart.height``, from its upper left corner. Shapes have
classes, no colours: ``tint-blue`` says which colour, ``dash-long`` which line.
"""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from paceline.surfaces.charts.scales import Scale

#: Of a chart that takes half of a page's width, of one beside something else, and of one that takes it all.
WIDTH, MIDDLE, WIDE = 480.0, 760.0, 1000.0
HEIGHT = 230.0
#: Of a row that has a name: the height that such charts have for each.
ROW_HEIGHT = 22.0
_FONT = 11.0
_GAP, _RIGHT = 7.0, 14.0
_TOP, _TOP_NAMED, _BOTTOM, _BOTTOM_NAMED = 8.0, 24.0, 22.0, 40.0
#: Names of ticks that would come closer than this are left out.
_LEAST_GAP = 8.0
#: Of a line that has gaps everywhere so many points are dots.
_MOST_ALONE = 60


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Polyline:
    """A line through points; None is a gap. ``key`` is what it stands for, in the legend."""

    points: Sequence[tuple[float, float | None]]
    style: str
    key: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """What lies between two heights; None is a gap."""

    points: Sequence[tuple[float, float | None, float | None]]
    style: str
    key: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """Boxes of one style: from where to where across, from where to where up."""

    boxes: Sequence[tuple[float, float, float, float]]
    style: str
    key: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """Points of one style, each with what it says when it is pointed at."""

    points: Sequence[tuple[float, float]]
    style: str
    key: str = ""
    said: Sequence[str] = ()
    radius: float = 4.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Words whose middle is at a point."""

    at: tuple[float, float]
    text: str
    style: str = ""


Shape = Polyline | Area | Boxes | Dots | Words


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LegendKey:
    """What a shape stands for: a row of the legend; ``shape`` is ``line``, ``area``, ``box`` or ``dot``."""

    shape: str
    style: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A path of SVG with its class."""

    d: str
    style: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A circle, or words, at a place of the canvas."""

    x: float
    y: float
    style: str
    text: str
    radius: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart as templates draw it: every number is a place on the canvas.

    Attributes:
        name: what it shows, for those who do not see it.
        across, up: places of the ticks, with their texts.
        across_name, up_name: what the axes are, with their units.
        rules: the lines at ticks, as one path.
        is_slanted: whether the names below are written upwards, as they have no place side by side.
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
        name: what it shows.
        across: the scale from left to right.
        up: the scale upwards, or downwards where it is one of rows.
        shapes: what is drawn, what lies below first.
        width: of the canvas.
        height: of the canvas; None: as high as the ticks of ``up`` need where they are rows, else `HEIGHT`.
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
    """Return about how wide a text is on the canvas: no font is at hand, so of a wide one."""
    return sum(_character_width(char) for char in text) * _FONT


def _character_width(char: str) -> float:
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if char in "ijlI.,:;'|! \N{NO-BREAK SPACE}()[]-f":
        return 0.37
    return 0.95 if char in "mwMW%@" else 0.64


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Plane:
    """Where values of both scales are on the canvas."""

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
    """Whether names of places have no room beside each other; ticks of numbers are thinned instead."""
    if across.has_rules or not across.ticks:
        return False
    each = room / len(across.ticks)
    return max(text_width(text) for _, text in across.ticks) + _LEAST_GAP > each and each < 3 * _FONT


def _thinned(ticks: Sequence[tuple[float, str]], width: float) -> Iterator[tuple[float, str]]:
    """Yield the names of ticks that have room; one that would be cut off at the edge is moved inwards."""
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
    """Return points that follow each other without a gap."""
    stretches: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is None:
            stretches.append([])
        else:
            stretches[-1].append((x, y))
    return [each for each in stretches if each]


def _joined(points: Sequence[tuple[float, float]]) -> str:
    """Return a path; a single point is one, too, which round ends make visible."""
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
        if max(map(len, stretches), default=0) == 1:  # Points alone make no line that is seen.
            for ((x, y),) in stretches[:_MOST_ALONE]:
                yield Marker(x=plane.x(x), y=plane.y(y), style=shape.style, text="", radius=3.0)


def _keys(shape: Shape) -> Iterator[LegendKey]:
    if not isinstance(shape, Words) and shape.key:
        kinds = {Polyline: "line", Area: "area", Boxes: "box", Dots: "dot"}
        yield LegendKey(shape=kinds[type(shape)], style=shape.style, text=shape.key)


def _n(value: float) -> str:
    """Return a number in as few characters as it takes, to a tenth."""
    return f"{value:.1f}".removesuffix(".0").replace("-0.", "-.").removeprefix("0") or "0"
