"""The thresholds of all rules with what this site has set."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from paceline.diagnosing import catalogues
from paceline.diagnosing.rules import Rule
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
    def shown_value(self) -> str:
        """The number as a table shows it."""
        return shown(self.value)

    @property
    def shown_default(self) -> str:
        """The default as a table shows it; empty: the site has set no other number."""
        return shown(self.default) if self.value != self.default else ""


def shown(value: float) -> str:
    """Return a number as a table shows it: whole ones with separators, others with six digits."""
    return f"{value:,.0f}" if value == int(value) else f"{value:.6g}"


def numbers(settings: Mapping[str, float]) -> tuple[SiteNumber, ...]:
    """Return all thresholds, by name.

    Args:
        settings: the thresholds that the site has set, by name.
    """
    return _numbers(catalogues.THRESHOLDS.values(), settings)


def of_rule(rule: Rule, settings: Mapping[str, float]) -> tuple[SiteNumber, ...]:
    """Return the thresholds of a rule; see `numbers`."""
    return _numbers(catalogues.thresholds(rule), settings)


def _numbers(thresholds: Iterable[Threshold], settings: Mapping[str, float]) -> tuple[SiteNumber, ...]:
    codes = _codes()
    return tuple(
        SiteNumber(
            name=threshold.name,
            value=threshold.value(settings),
            default=threshold.default,
            unit=str(threshold.unit),
            means=threshold.means,
            source=threshold.source,
            rules=tuple(codes.get(threshold, ())),
        )
        for threshold in thresholds
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
