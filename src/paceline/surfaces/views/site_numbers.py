"""The output of ``paceline thresholds``: all thresholds, or the meaning of one."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.surfaces.site_numbers import SiteNumber
from paceline.surfaces.views import cells, tables
from paceline.surfaces.views.tables import Column


def table(numbers: Sequence[SiteNumber], *, width: int | None) -> RenderableType:
    """Return a row for each threshold; those that the site has set are bold."""
    styles = ["bold" if number.shown_default else "" for number in numbers]
    columns = (
        Column(header="NAME", cells=[number.name for number in numbers], styles=styles),
        Column(header="VALUE", cells=[number.shown_value for number in numbers], right=True, styles=styles),
        Column(header="UNIT", cells=[number.unit for number in numbers]),
        Column(header="DEFAULT", cells=[number.shown_default for number in numbers], right=True),
        Column(header="RULES", cells=[", ".join(number.rules) for number in numbers], shrink_to=7, drop=1),
    )
    return tables.fit(columns, width).text


def page(number: SiteNumber, *, width: int | None) -> RenderableType:
    """Return the meaning of a threshold."""
    head = Text(f"{number.name} {number.shown_value} {number.unit}", style="bold")
    if number.shown_default:
        head.append(f" (default {number.shown_default})", style="dim")
    parts = [head]
    source = number.source or "own reasoning"
    for title, text in (("Means", number.means), ("From", source), ("Rules", ", ".join(number.rules))):
        if text:
            parts += [Text(), Text(title, style="bold"), cells.indented(text, width)]
    return Group(*parts)
