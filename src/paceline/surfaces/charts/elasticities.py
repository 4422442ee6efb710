"""A picture of a probe: the elasticity of each part with its interval, from nothing to all of the rate."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from paceline.model.measures.probes import LEAST, Elasticity, PartVerdict, Probe
from paceline.probing import sayings

#: From where to where elasticities are drawn; what is beyond stands at the end.
LOW, HIGH = -0.25, 1.25
#: The width of the picture.
WIDTH = 1000.0
_STYLES = {
    PartVerdict.BINDS: "tint-vermilion",
    PartVerdict.RESTS: "tint-green",
    PartVerdict.UNCLEAR: "tint-yellow",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ElasticityRow:
    """A part, on a scale up to ``WIDTH``.

    Attributes:
        verdict: `PartVerdict`, for words.
        value: the place of the elasticity.
        low, high: the ends of its interval.
        shown: the number.
        interval: in words.
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
    """The rows, and what lies beneath all of them.

    Attributes:
        nothing, all, least: the places of 0, of 1, and of the least that would be noticed.
        conclusion: what was found, in a sentence.
        foretold: what more of what binds would bring, in a sentence each.
        spent: what the probe took and cost.
    """

    rows: tuple[ElasticityRow, ...]
    nothing: float
    all: float
    least: float
    conclusion: str
    foretold: tuple[str, ...]
    spent: str


def picture(probes: Sequence[Probe]) -> ElasticityPicture | None:
    """Return the picture of the newest probe that has cut anything; None: there is none."""
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
