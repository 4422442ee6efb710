"""Writes a chart as an SVG file with its title, its legend, and its colours for light and dark themes."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from importlib import resources

import jinja2

from paceline.surfaces import templates
from paceline.surfaces.charts import drawings
from paceline.surfaces.charts.drawings import Chart, LegendKey

_EDGE, _TITLE_HEIGHT, _KEY_HEIGHT, _BELOW = 14.0, 36.0, 20.0, 6.0
#: The width of a legend's mark before its text, and the gap between two entries of the legend.
_KEY_WIDTH, _KEY_GAP = 32.0, 18.0
_STYLE = """
svg { font: 11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
.name { font-size: 14px; font-weight: 600; }
.paper { fill: var(--paper); }
"""


def svg(chart: Chart, said: str) -> str:
    """Return a chart as an SVG file.

    Args:
        chart: the chart; its name is the title.
        said: a sentence that describes the chart for screen readers.
    """
    keys = list(_placed(chart.keys, chart.width))
    top = max((y for _, y, _ in keys), default=_TITLE_HEIGHT - _KEY_HEIGHT) + _KEY_HEIGHT + _BELOW
    made = _environment()
    return made.get_template("picture.svg").render(
        chart=chart,
        charts=made.get_template("charts.html").module,
        said=said,
        keys=keys,
        edge=_EDGE,
        top=top,
        width=chart.width,
        height=round(top + chart.height + _BELOW, 1),
        style=_style(),
    )


def _placed(keys: Sequence[LegendKey], width: float) -> Iterator[tuple[float, float, LegendKey]]:
    """Yield the position of each entry of the legend: side by side while there is room, else in a new row."""
    x, y = _EDGE, _TITLE_HEIGHT
    for key in keys:
        room = _KEY_WIDTH + drawings.text_width(key.text)
        if x > _EDGE and x + room > width - _EDGE:
            x, y = _EDGE, y + _KEY_HEIGHT
        yield x, y, key
        x = round(x + room + _KEY_GAP, 1)


@functools.cache
def _environment() -> jinja2.Environment:
    return templates.environment(templates.CHARTS, "")


@functools.cache
def _style() -> str:
    """Return the style of a file; it has media queries, as SVG viewers do not support ``light-dark()``."""
    folder = resources.files(templates.CHARTS)
    colours, marks = ((folder / name).read_text(encoding="utf-8") for name in ("colours.css", "charts.css"))
    pairs = re.findall(r"(--[a-z-]+): light-dark\((#\w+), (#\w+)\);", colours)
    light, dark = (" ".join(f"{name}: {pair[place]};" for name, *pair in pairs) for place in (0, 1))
    rules = [line for line in marks.splitlines() if re.match(r"\.(tint|marks|shade)\b", line)]
    scheme = f"svg {{ {light} }}\n@media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}"
    return "\n".join([scheme, *rules]) + _STYLE
