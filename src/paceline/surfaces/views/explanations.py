"""The output of ``paceline explain``: all codes, or the explanation of one code."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.surfaces.explanations import CodeEntry
from paceline.surfaces.views import cells, styles


def table(entries: Sequence[CodeEntry], *, width: int | None) -> RenderableType:
    """Return a line for each code."""
    lines = []
    for entry in entries:
        line = Text()
        line.append(f"{entry.code:<8} ", style="bold")
        line.append(f"{entry.severity:<7} ", style="dim")
        room = 10**6 if width is None else max(20, width - 17)
        line.append(("\n" + " " * 17).join(cells.wrapped(entry.title, room)))
        lines.append(line)
    return Group(*lines)


def page(entry: CodeEntry, *, width: int | None) -> RenderableType:
    """Return the explanation of a code."""
    head = Text()
    name = f" ({entry.name})" if entry.name else ""
    head.append(f"{entry.severity} {entry.code}{name}", style=styles.of_severity(entry.severity))
    head.append(f" {entry.title}", style="bold")
    parts = [head]
    for title, text in (("Why", entry.why), ("Fix", entry.fix), ("Risk", entry.risk)):
        if text:
            parts += [Text(), Text(title, style="bold"), cells.indented(text, width)]
    return Group(*parts)
