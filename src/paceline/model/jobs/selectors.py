"""Label selectors, as kubectl takes them: ``team=ads``, ``team!=ads``, ``team in (ads, search)``, ``!team``.

Requirements are joined by commas; all have to hold. As in Kubernetes, ``!=`` and ``notin`` also select
objects without the label.

Source: Kubernetes' documentation, "Labels and Selectors"; ``labels.Parse`` of ``k8s.io/apimachinery``
(without ``>`` and ``<``).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_PREFIX = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_KEY = rf"(?:{_PREFIX}/)?{_NAME}"
_SETS = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")
_EQUALS = re.compile(rf"({_KEY})\s*(==|!=|=)\s*((?:{_NAME})?)")
_HAS = re.compile(rf"(!?)\s*({_KEY})")
_VALUE = re.compile(rf"(?:{_NAME})?")


@dataclasses.dataclass(frozen=True, slots=True)
class Requirement:
    """What one label has to be: one of some values or, if ``is_negated``, none of them.

    Attributes:
        values: the values; None: any value, so only the presence of the label counts.
    """

    key: str
    values: frozenset[str] | None = None
    is_negated: bool = False

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels meets the requirement."""
        is_one = self.key in labels and (self.values is None or labels[self.key] in self.values)
        return is_one is not self.is_negated

    def __str__(self) -> str:
        if self.values is None:
            return f"{'!' if self.is_negated else ''}{self.key}"
        if len(self.values) == 1:
            return f"{self.key}{'!=' if self.is_negated else '='}{next(iter(self.values))}"
        return f"{self.key} {'notin' if self.is_negated else 'in'} ({','.join(sorted(self.values))})"


@dataclasses.dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that all have to hold; without any, every object is selected."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(each.holds(labels) for each in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def parse(text: str) -> Selector:
    """Return the selector that a text describes.

    Raises:
        ValueError: the text cannot be parsed; the message says where.
    """
    requirements = []
    at = _skip(text, 0)
    while at < len(text):
        requirement, at = _requirement(text, at)
        requirements.append(requirement)
        at = _skip(text, at)
        if at == len(text):
            break
        if text[at] != ",":
            raise ValueError(f"a comma is needed before {text[at:]!r}")
        at = _skip(text, at + 1)
        if at == len(text):
            raise ValueError("nothing follows the last comma")
    return Selector(tuple(requirements))


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _requirement(text: str, at: int) -> tuple[Requirement, int]:
    """Return the requirement that begins at a position, and the position of its end."""
    if match := _SETS.match(text, at):
        values = frozenset(each.strip() for each in match[3].split(","))
        wrong = sorted(each for each in values if not _VALUE.fullmatch(each))
        if wrong:
            raise ValueError(f"{wrong[0]!r} cannot be the value of a label")
        return Requirement(match[1], values, match[2] == "notin"), match.end()
    if match := _EQUALS.match(text, at):
        return Requirement(match[1], frozenset({match[3]}), match[2] == "!="), match.end()
    if match := _HAS.match(text, at):
        return Requirement(match[2], None, bool(match[1])), match.end()
    raise ValueError(f"no label can begin with {text[at:]!r}")
