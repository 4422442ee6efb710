"""The look of all plots: colours that the page's theme decides on, line styles by role, SVG to be inlined.

Matplotlib draws with stand-in colours, which are then replaced by the page's CSS variables, so that one SVG
is right in light and dark and in print. The hues are those of Okabe and Ito, which colour-blind people can
tell apart (Okabe and Ito 2008, "Color Universal Design"); roles differ in line style as well. The same data
give the same bytes: ids come from a fixed salt and no dates are written.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from paceline.model.roles import ReplicaId, Role

WIDTH_INCHES = 5.6
HEIGHT_INCHES = 2.6
#: So much fits beside each other above a panel of that width.
LEGEND_CHARACTERS = 68

#: Stand-ins, and the CSS variable that each becomes.
INK, MUTED, GRID, PAPER = "#010203", "#010204", "#010205", "#010206"
ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7",
)  # fmt: skip
_VARIABLES = {
    INK: "ink", MUTED: "muted", GRID: "grid", PAPER: "paper", ORANGE: "orange", SKY: "sky", GREEN: "green",
    YELLOW: "yellow", BLUE: "blue", VERMILION: "vermilion", PURPLE: "purple",
}  # fmt: skip

_COLOURS = {
    Role.PS: (VERMILION, ORANGE, PURPLE, YELLOW),
    Role.WORKER: (BLUE, SKY, GREEN, MUTED),
    Role.CHIEF: (GREEN, BLUE, SKY, MUTED),
    Role.EVALUATOR: (PURPLE, ORANGE, YELLOW, MUTED),
}
_DASHES: dict[Role, str | tuple[float, tuple[float, ...]]] = {
    Role.PS: "-",
    Role.WORKER: (0.0, (4.0, 1.2)),
    Role.CHIEF: (0.0, (6.0, 1.2, 1.2, 1.2)),
    Role.EVALUATOR: (0.0, (1.2, 1.2)),
}

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "paceline",
    "font.size": 9.0,
    "font.family": ["DejaVu Sans"],
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "hatch.color": PAPER,
    "hatch.linewidth": 1.2,
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A drawing, and the sentence that says what it shows.

    Attributes:
        svg: an ``svg`` element.
        name: in small letters, unique on the page.
        wide: whether it takes the whole width of the page.
    """

    name: str
    title: str
    svg: str
    caption: str
    wide: bool = False


def colour(replica: ReplicaId) -> str:
    """Return the colour of a replica."""
    return _COLOURS[replica.role][replica.index % len(_COLOURS[replica.role])]


def colour_of_role(role: Role) -> str:
    """Return the colour of a role as a whole."""
    return _COLOURS[role][0]


def dashes(role: Role) -> str | tuple[float, tuple[float, ...]]:
    """Return the line style of a role."""
    return _DASHES[role]


@contextlib.contextmanager
def figure(
    *, height: float = HEIGHT_INCHES, panels: int = 1, width: float = WIDTH_INCHES
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Give a figure with panels side by side; draw and export it within the context."""
    with matplotlib.rc_context(_SETTINGS):
        made = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(made)
        made.patch.set_alpha(0.0)
        grid = made.subplots(1, panels, squeeze=False)
        axes: list[Axes] = list(grid[0])
        for one in axes:
            one.patch.set_alpha(0.0)
        yield made, axes


def legend(axes: Axes, *, characters: int = LEGEND_CHARACTERS) -> None:
    """Put the legend above the panel, in as many rows as it takes.

    Args:
        axes: the panel.
        characters: so many fit beside each other above it.
    """
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    columns = max(1, characters // (max(map(len, labels)) + 7))
    axes.legend(
        handles, labels, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2,
        ncols=min(columns, len(handles)), handlelength=2.6, columnspacing=1.4,
    )  # fmt: skip


def time_scale(seconds: float) -> tuple[float, str]:
    """Return what to divide seconds by on an axis of such a length, and the unit that it then has."""
    if seconds <= 600:
        return 1.0, "s"
    return (60.0, "min") if seconds <= 4 * 3600 else (3600.0, "h")


def byte_scale(highest: float) -> tuple[float, str]:
    """Return what to divide bytes by on an axis up to such a height, and the unit that they then have."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if highest >= 1024.0**power:
            return 1024.0**power, unit
    return 1.0, "B"


def scaled(values: Sequence[float | None], scale: float) -> list[float]:
    """Return values for Matplotlib: divided, and not a number where there is none."""
    return [math.nan if value is None else value / scale for value in values]


def marker(values: Sequence[float | None]) -> str | None:
    """Return the marker that a line needs so that lone points are seen."""
    return "o" if sum(value is not None for value in values) <= 2 else None


def svg(made: Figure, *, name: str, title: str) -> str:
    """Return a figure as an ``svg`` element.

    Args:
        made: the figure.
        name: unique on the page; the ids within begin with it.
        title: what screen readers say.
    """
    stream = io.StringIO()
    made.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*|<style.*?</style>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text)
    text = text.replace("xlink:href=", "href=")
    text = re.sub(r'\b(id=")', rf"\g<1>{name}-", text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", text)
    text = re.sub(r"font-family: [^;\"]*;?|'DejaVu Sans'[^;\"]*", _without_family, text)
    for stand_in, variable in _VARIABLES.items():
        text = re.sub(re.escape(stand_in), f"var(--{variable})", text, flags=re.IGNORECASE)
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)
    box = size[0] if size else ""
    opening = f'<svg class="drawing" role="img" aria-label="{_attribute(title)}" {box}>'
    return re.sub(r"<svg[^>]*>", lambda _: opening, text, count=1).strip()


def _without_family(found: re.Match[str]) -> str:
    """Leave the font to the page."""
    return "" if found[0].startswith("font-family") else "inherit"


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
