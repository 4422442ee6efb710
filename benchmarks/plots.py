"""The few kinds of plots that benchmarks draw, with the parts that reports and pages have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from paceline.surfaces.charts import drawings, files, scales
from paceline.surfaces.charts.drawings import Boxes, Dots, Polyline, Shape, Words
from paceline.surfaces.charts.scales import Scale

_WIDTH = 760.0
_CELL = 24.0
_SHADES = 8
#: So many columns are wide enough for their names.
_FEW = 6


def strips(
    path: Path,
    groups: Mapping[str, Sequence[float]],
    *,
    label: str,
    title: str,
    limits: Mapping[str, float] | None = None,
) -> None:
    """Draw every repeat of each group as a dot, its median as a bar, and its limit as a dashed line."""
    rows = list(enumerate(groups.items()))
    medians = [(row, sorted(values)[len(values) // 2]) for row, (_, values) in rows]
    drawn = [value for values in groups.values() for value in values] + list((limits or {}).values())
    low, high = min(drawn), max(drawn)
    # Amounts are seen from 0 on, unless that would hide how they differ.
    low = 0.0 if 0 < low < high / 2 else low
    room = 0.03 * (high - low)
    across = scales.between(low - room if low else 0.0, high + room, label)
    shapes: list[Shape] = [
        Dots(
            points=[(value, row + 0.5) for row, (_, values) in rows for value in _apart(values, across)],
            style="tint-blue faint", key="a repeat",
        ),
        Polyline(points=_ticked(medians, 0.25), style="tint-ink thick", key="median"),
    ]  # fmt: skip
    if limits:
        at = [(row, limits[name]) for row, (name, _) in rows if name in limits]
        shapes.append(Polyline(points=_ticked(at, 0.4), style="tint-vermilion dash-long", key="limit"))
    chart = drawings.chart(title, across, scales.rows(list(groups)), shapes, width=_WIDTH)
    said = f"A row for each of {', '.join(groups)}: {label} of each repeat, with their median."
    path.write_text(files.svg(chart, said))


def _apart(values: Sequence[float], across: Scale) -> list[float]:
    """Return the values that can be told apart: thousands of dots on top of each other show nothing more."""
    return list({round(across.part(value) * _WIDTH): value for value in values}.values())


def _ticked(places: Sequence[tuple[int, float]], reach: float) -> list[tuple[float, float | None]]:
    """Return a short upright line in each row."""
    points: list[tuple[float, float | None]] = []
    for row, value in places:
        points += [(value, row + 0.5 - reach), (value, row + 0.5 + reach), (value, None)]
    return points


def matrix(
    path: Path, counts: Sequence[Sequence[int]], *, rows: Sequence[str], columns: Sequence[str], title: str
) -> None:
    """Draw counts as a grid: the darker the more, each count in its cell."""
    cells = [
        (x, y, count, count / sum(row))
        for y, row in enumerate(counts)
        for x, count in enumerate(row)
        if count
    ]
    shapes: list[Shape] = [
        Boxes(
            boxes=[(x, x + 1, y, y + 1) for x, y, _, share in cells if _shade(share) == shade],
            style=f"tint-blue shade-{shade}",
        )
        for shade in range(_SHADES)
    ]
    shapes += [
        Words(at=(x + 0.5, y + 0.5), text=str(count), style="on" if _shade(share) > _SHADES // 2 else "")
        for x, y, count, share in cells
    ]
    names, heads = (max(map(drawings.text_width, each)) for each in (rows, columns))
    cell = heads + _CELL if len(columns) <= _FEW else _CELL
    chart = drawings.chart(
        title,
        scales.places(columns),
        scales.rows(rows),
        shapes,
        width=round(names + cell * len(columns) + 40.0),
    )
    said = f"Counts in {len(rows)} rows and {len(columns)} columns; of a row the darker cells have more."
    path.write_text(files.svg(chart, said))


def _shade(share: float) -> int:
    return min(_SHADES - 1, int(share * _SHADES))
