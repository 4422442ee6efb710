"""What ``paceline explain`` shows: all codes, or one with what it is about."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.surfaces.explanations import Entry
from paceline.surfaces.views import cells, styles


def table(entries: Sequence[Entry], *, width: int | None) -> RenderableType:
    """Return a line for each code."""
    lines = []
    for entry in entries:
        line = Text()
        line.append(f"{entry.code:<8} ", style="bold")
        line.append(f"{entry.severity or 'cause':<7} ", style="dim")
        room = 10**6 if width is None else max(20, width - 17)
        line.append(("\n" + " " * 17).join(cells.wrapped(entry.title, room)))
        lines.append(line)
    return Group(*lines)


def page(entry: Entry, *, width: int | None) -> RenderableType:
    """Return all that is known about a code."""
    head = Text()
    if entry.severity is not None:
        head.append(f"{entry.severity} {entry.code}", style=styles.of_severity(entry.severity))
    else:
        head.append(f"{entry.code} ({entry.name})", style="bold yellow")
    head.append(f" {entry.title}", style="bold")
    return Group(
        head, Text(), Text("Why", style="bold"), cells.indented(entry.why, width),
        Text(), Text("Fix", style="bold"), cells.indented(entry.fix, width),
    )  # fmt: skip
