"""The lint rule: an explanation for users, and a pure function that yields the places where it applies."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from paceline.model.explanations import findings
from paceline.model.explanations.findings import Severity
from paceline.specs.yaml_text import documents, problems

Subject = TypeVar("Subject")

#: Up to this many similar findings are shown one by one.
_MOST_ALIKE = 3
_DIGITS = re.compile(r"\d+", re.ASCII)


class Positioned(Protocol):
    """An object that knows the positions of its parts in a file."""

    def position(self, path: documents.Path, *, key: bool = False) -> findings.TextPosition:
        """Return the position of a path."""


@dataclasses.dataclass(frozen=True, slots=True)
class LintHit:
    """One place where a rule applies.

    Attributes:
        document: the document that has the place.
        path: the field, from the top of the document.
        message: what was found, with the numbers.
        fix: what to change, if the rule's own text is too general.
        severity: the severity, if it differs from the rule's own.
        key: whether the key of the field is the place, not its value.
    """

    document: Positioned
    path: documents.Path
    message: str
    fix: str | None = None
    severity: Severity | None = None
    key: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LintRule(Generic[Subject]):
    """A rule of the catalogue.

    Attributes:
        why: why it is a problem, in plain words, with numbers if they are known.
        fix: what to change.
        check: yields every place where the rule applies.
    """

    code: str
    title: str
    severity: Severity
    why: str
    fix: str
    check: Callable[[Subject], Iterator[LintHit]]

    def findings(self, subject: Subject) -> Iterator[findings.Finding]:
        """Yield what this rule finds in a subject, with control characters of the file escaped."""
        for hit in self.check(subject):
            position = hit.document.position(hit.path, key=hit.key)
            yield findings.Finding(
                code=self.code,
                severity=hit.severity or self.severity,
                path=problems.dotted(hit.path),
                message=problems.visible(hit.message),
                fix=problems.visible(hit.fix or self.fix),
                position=dataclasses.replace(position, file=problems.visible(position.file)),
            )


def rule(
    code: str, title: str, severity: Severity, *, why: str, fix: str
) -> Callable[[Callable[[Subject], Iterator[LintHit]]], LintRule[Subject]]:
    """Return the decorator that turns a check into a rule."""

    def decorate(check: Callable[[Subject], Iterator[LintHit]]) -> LintRule[Subject]:
        return LintRule(code=code, title=title, severity=severity, why=why, fix=fix, check=check)

    return decorate


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 slot``, ``2 slots``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def in_order(found: Iterator[findings.Finding]) -> tuple[findings.Finding, ...]:
    """Return findings without repeats, in the order of the file."""
    unique = {(f.code, str(f.position), f.message): f for f in found}
    return tuple(sorted(unique.values(), key=_place))


def merged(found: Iterable[findings.Finding]) -> tuple[findings.Finding, ...]:
    """Return findings; the first of a large group of similar ones stands for the group, with their number."""
    alike: dict[tuple[str, findings.Severity, str], list[findings.Finding]] = {}
    for finding in found:
        words = _DIGITS.sub("#", finding.message)
        alike.setdefault((finding.code, finding.severity, words), []).append(finding)
    kept: list[findings.Finding] = []
    for group in alike.values():
        if len(group) <= _MOST_ALIKE:
            kept += group
            continue
        last = group[-1].position
        until = f", the last at line {last.line}" if last else ""
        kept.append(dataclasses.replace(group[0], message=f"{group[0].message} ({len(group)} alike{until})"))
    return tuple(sorted(kept, key=_place))


def _place(finding: findings.Finding) -> tuple[int, int, str]:
    where = finding.position
    return (where.line, where.column, finding.code) if where else (0, 0, finding.code)
