"""The thresholds of all rules with what this site has set."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from paceline.diagnosing import catalogues
from paceline.diagnosing.thresholds import Threshold
from paceline.errors import NotFound
from paceline.specs.yaml_text import problems


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SiteNumber:
    """A threshold as this site uses it.

    Attributes:
        value: the number that rules compare with.
        default: the number unless the site sets another one.
        unit: the unit of both.
        means: what is so from this number on, or below it.
        source: where the default is from; empty: own reasoning.
        rules: the codes of the rules that compare with it.
    """

    name: str
    value: float
    default: float
    unit: str
    means: str
    source: str
    rules: tuple[str, ...]

    @property
    def is_set(self) -> bool:
        """Whether the site has set another number."""
        return self.value != self.default


def numbers(settings: Mapping[str, float]) -> tuple[SiteNumber, ...]:
    """Return all thresholds, by name.

    Args:
        settings: the thresholds that the site has set, by name.
    """
    codes = _codes()
    return tuple(
        _number(threshold, settings, codes.get(threshold, ())) for threshold in catalogues.THRESHOLDS.values()
    )


def _number(threshold: Threshold, settings: Mapping[str, float], rules: Sequence[str]) -> SiteNumber:
    return SiteNumber(
        name=threshold.name,
        value=threshold.value(settings),
        default=threshold.default,
        unit=str(threshold.unit),
        means=threshold.means,
        source=threshold.source,
        rules=tuple(rules),
    )


def _codes() -> Mapping[Threshold, list[str]]:
    """Return the codes of the rules that compare with each threshold."""
    codes: dict[Threshold, list[str]] = {}
    for rule in catalogues.RULES:
        for threshold in catalogues.thresholds(rule):
            codes.setdefault(threshold, []).append(rule.topic.code)
    return codes


def find(known: Sequence[SiteNumber], name: str) -> SiteNumber:
    """Return the threshold of a name, in upper or lower case.

    Raises:
        NotFound: there is no such name.
    """
    by_name = {number.name: number for number in known}
    number = by_name.get(name.strip().lower())
    if number is None:
        close = problems.did_you_mean(name, by_name)
        raise NotFound(
            f"there is no threshold {problems.shown(name)}{close}", "paceline thresholds lists all"
        )
    return number
