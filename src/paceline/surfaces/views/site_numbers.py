"""The output of ``paceline thresholds``: all thresholds, or the meaning of one."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.surfaces import cause_pages
from paceline.surfaces.site_numbers import SiteNumber
from paceline.surfaces.views import cells, tables
from paceline.surfaces.views.tables import Column


def table(numbers: Sequence[SiteNumber], *, width: int | None) -> RenderableType:
    """Return a row for each threshold; those that the site has set are bold."""
    styles = ["bold" if number.is_set else "" for number in numbers]
    columns = (
        Column(header="NAME", cells=[number.name for number in numbers], styles=styles),
        Column(header="VALUE", cells=[_shown(number.value) for number in numbers], right=True, styles=styles),
        Column(header="UNIT", cells=[number.unit for number in numbers]),
        Column(header="DEFAULT", cells=[_default(number) for number in numbers], right=True),
        Column(header="RULES", cells=[", ".join(number.rules) for number in numbers], shrink_to=7, drop=1),
    )
    return tables.fit(columns, width).text


def page(number: SiteNumber, *, width: int | None) -> RenderableType:
    """Return the meaning of a threshold."""
    head = Text(f"{number.name} {_shown(number.value)} {number.unit}", style="bold")
    default = _default(number)
    if default:
        head.append(f" (default {default})", style="dim")
    parts = [head]
    source = number.source or "own reasoning"
    for title, text in (("Means", number.means), ("From", source), ("Rules", ", ".join(number.rules))):
        if text:
            parts += [Text(), Text(title, style="bold"), cells.indented(text, width)]
    return Group(*parts)


def _shown(value: float) -> str:
    return cause_pages.number(value)


def _default(number: SiteNumber) -> str:
    return _shown(number.default) if number.is_set else ""
