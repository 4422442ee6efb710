"""A probe as a table: the parts that were cut, the cost of the cuts, and the conclusion."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.model.measures.probes import Elasticity, PartVerdict, Probe
from paceline.probing import sayings
from paceline.surfaces.views import cells, tables

_STYLES = {PartVerdict.BINDS: "bold red", PartVerdict.RESTS: "green", PartVerdict.UNCLEAR: "yellow"}


def page(probe: Probe, width: int | None) -> RenderableType:
    """Return a table of the parts that were cut, followed by the conclusion."""
    lines = [Text(sayings.conclusion(probe.elasticities), style="bold")]
    lines += [Text(each) for each in sayings.foretold(probe.elasticities)]
    lines.append(Text(sayings.spent(probe), style="dim"))
    if not probe.elasticities:
        return Group(*lines)
    return Group(_table(probe.elasticities, width), Text(), *lines)


def _table(found: Sequence[Elasticity], width: int | None) -> Text:
    Column = tables.Column
    verdicts = [str(each.verdict) for each in found]
    columns = [
        Column(header="PART", cells=[cells.clean(each.part.name) for each in found], shrink_to=20),
        Column(header="ELASTICITY", cells=[f"{each.value:.2f}" for each in found], right=True),
        Column(header="95 %", cells=[f"{each.low:.2f} to {each.high:.2f}" for each in found], drop=2),
        Column(header="CUTS", cells=[str(each.cuts) for each in found], right=True, drop=3),
        Column(header="IT", cells=verdicts, styles=[_STYLES[each.verdict] for each in found]),
        Column(
            header="30 % LESS OF IT",
            cells=[sayings.cost(each).removesuffix(" of the rate") for each in found],
            shrink_to=16,
            drop=1,
        ),
    ]
    return tables.fit(columns, width).text
