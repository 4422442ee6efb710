"""A chart of a probe: the elasticity of each probed part with its interval."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from paceline.model.measures.probes import LEAST, Elasticity, PartVerdict, Probe
from paceline.probing import sayings

#: The ends of the scale of elasticities; values beyond are drawn at the end.
LOW, HIGH = -0.25, 1.25
#: The width of the chart.
WIDTH = 1000.0
_STYLES = {
    PartVerdict.BINDS: "tint-vermilion",
    PartVerdict.RESTS: "tint-green",
    PartVerdict.UNCLEAR: "tint-yellow",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ElasticityRow:
    """A probed part, with positions on a scale up to ``WIDTH``.

    Attributes:
        verdict: the `PartVerdict` as text.
        value: the position of the elasticity.
        low, high: the positions of the ends of its interval.
        shown: the elasticity as text.
        interval: the interval as text.
    """

    name: str
    verdict: str
    style: str
    value: float
    low: float
    high: float
    shown: str
    interval: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ElasticityPicture:
    """The rows of the chart, and the marks and texts that they share.

    Attributes:
        nothing, all, least: the positions of 0, of 1, and of the smallest noticeable elasticity.
        conclusion: the conclusion of the probe, as a sentence.
        foretold: for each binding part, a sentence about the predicted effect of more of it.
        spent: the duration and cost of the probe.
    """

    rows: tuple[ElasticityRow, ...]
    nothing: float
    all: float
    least: float
    conclusion: str
    foretold: tuple[str, ...]
    spent: str


def picture(probes: Sequence[Probe]) -> ElasticityPicture | None:
    """Return the chart of the newest probe with at least one elasticity; None if there is no such probe."""
    probe = next((each for each in reversed(probes) if each.elasticities), None)
    if probe is None:
        return None
    return ElasticityPicture(
        rows=tuple(map(_row, probe.elasticities)),
        nothing=_place(0.0),
        all=_place(1.0),
        least=_place(LEAST),
        conclusion=sayings.conclusion(probe.elasticities),
        foretold=tuple(sayings.foretold(probe.elasticities)),
        spent=sayings.spent(probe),
    )


def _row(each: Elasticity) -> ElasticityRow:
    return ElasticityRow(
        name=each.part.name,
        verdict=str(each.verdict),
        style=_STYLES[each.verdict],
        value=_place(each.value),
        low=_place(each.low),
        high=_place(each.high),
        shown=f"{each.value:.2f}",
        interval=f"{each.low:.2f} to {each.high:.2f}",
    )


def _place(elasticity: float) -> float:
    return (min(HIGH, max(LOW, elasticity)) - LOW) / (HIGH - LOW) * WIDTH
