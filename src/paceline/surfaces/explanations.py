"""A catalogue of all codes of lint rules and causes, with their explanations."""

from __future__ import annotations

import dataclasses

from paceline import linting
from paceline.diagnosing import catalogues
from paceline.errors import NotFound
from paceline.model.explanations.findings import Severity
from paceline.specs.yaml_text import problems


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CodeEntry:
    """The explanation of a code.

    Attributes:
        name: the name of a cause in documents; empty for a lint rule.
        risk: what the fix may cost; empty if there is no risk.
    """

    code: str
    title: str
    severity: Severity
    why: str
    fix: str
    name: str = ""
    risk: str = ""


def entries() -> tuple[CodeEntry, ...]:
    """Return all entries, sorted by code."""
    rules = (
        CodeEntry(code=rule.code, title=rule.title, why=rule.why, fix=rule.fix, severity=rule.severity)
        for rule in linting.catalogue()
    )
    causes = (
        CodeEntry(
            code=topic.code,
            title=topic.title,
            severity=topic.severity,
            why=topic.why,
            fix=topic.fix,
            name=topic.name,
            risk=topic.risk,
        )
        for topic in catalogues.TOPICS
    )
    return tuple(sorted((*rules, *causes), key=lambda entry: entry.code))


def find(text: str) -> CodeEntry:
    """Return the entry of a code or of a cause's name, in upper or lower case.

    Raises:
        NotFound: there is no such code or name.
    """
    known = {word: entry for entry in entries() for word in (entry.code, entry.name) if word}
    word = text.strip()
    found = known.get(word.upper()) or known.get(word.lower())
    if found is None:
        close = problems.did_you_mean(word, known)
        raise NotFound(f"there is no code {problems.shown(text)}{close}", "paceline explain lists all")
    return found
