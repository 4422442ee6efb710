"""Curves over a choice of settings: each value with its interval and its text."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence

from paceline.surfaces.charts import drawings, scales
from paceline.surfaces.charts.drawings import Area, Chart, Dots, Polyline, Shape

#: The axis ends at most at this multiple of a value: a wider interval would flatten the curve.
_MOST_TIMES = 2.5
_TINTS = ("blue", "vermilion", "green", "orange", "purple", "sky")
NOW, LIKELY = "now, measured", "90 % of what is likely"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CurveValue:
    """A value of a curve: its middle, the ends of its interval, and its kind."""

    label: str
    middle: float
    low: float
    high: float
    kind: str


def curve(
    name: str,
    places: Sequence[CurveValue],
    *,
    across: str,
    up: str,
    level: float,
    marks: Mapping[str, int],
    shown: Callable[[float], str],
) -> Chart:
    """Return a curve.

    Args:
        name: the title of the chart.
        places: the values of the curve, at least one.
        across: the name of the setting that is varied.
        up: the name of the result, with its unit.
        level: the measured result.
        marks: the indices of marked values, by the names of the marks.
        shown: formats a result.
    """
    most = max(level, *(min(point.high, _MOST_TIMES * point.middle) for point in places))
    at = [place + 0.5 for place in range(len(places))]
    shapes: list[Shape] = [
        Area(
            points=[(x, point.low, point.high) for x, point in zip(at, places, strict=True)],
            style="tint-sky", key=LIKELY,
        ),
        Polyline(
            points=[(0.0, level), (float(len(places)), level)], style="tint-muted thin dash-long", key=NOW
        ),
    ]  # fmt: skip
    up_scale = scales.up_to(most, up)
    for mark, place in marks.items():
        x = place + 0.5
        shapes.append(
            Polyline(points=[(x, 0.0), (x, up_scale.high)], style=_MARKS.get(mark, _MARK), key=mark)
        )
    shapes.append(
        Polyline(points=[(x, point.middle) for x, point in zip(at, places, strict=True)], style="tint-ink")
    )
    kinds = dict.fromkeys(point.kind for point in places)
    for kind, tint in zip(kinds, itertools.cycle(_TINTS), strict=False):
        dots = [(x, point) for x, point in zip(at, places, strict=True) if point.kind == kind]
        shapes.append(
            Dots(
                points=[(x, point.middle) for x, point in dots],
                said=[
                    f"{point.label}: {shown(point.middle)} ({shown(point.low)} to {shown(point.high)})"
                    for _, point in dots
                ],
                style=f"tint-{tint}",
                key=kind,
                radius=4.5,
            )
        )
    return drawings.chart(
        name,
        scales.places([point.label for point in places], across),
        up_scale,
        shapes,
        width=drawings.MIDDLE,
        height=280.0,
    )


_MARK = "tint-muted thin dash-short"
_MARKS = {"chosen": "tint-ink thin"}
