"""Reads job files, and changes to them, that come in requests.

A separate process reads them, and the server ends it when it takes too long or too much memory: so one
request blocks neither the event loop nor the memory of the server.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from paceline import linting, specs
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Finding
from paceline.model.jobs.job_specs import JobSpec
from paceline.services.bounded_readers import BoundedReader
from paceline.specs.edits import assignments, edits

#: The file name in problems: a job file in a request has no name.
FILE = "job file"


@dataclasses.dataclass(frozen=True, slots=True)
class LintedFile:
    """A job file of a request.

    Attributes:
        text: the text as it is stored.
        findings: the findings of lint.
    """

    spec: JobSpec
    text: str
    findings: tuple[Finding, ...]


class JobFiles:
    """Reads job files; a method raises ``InvalidInput`` for wrong input, or beyond its time or memory."""

    def __init__(self) -> None:
        self._reader: BoundedReader[tuple[Callable[..., Any], tuple[Any, ...]], Any] = BoundedReader(_answer)

    def read(self, source: str) -> LintedFile:
        """Return a job file."""
        found: LintedFile = self._reader.read((_read, (source,)))
        return found

    def spec(self, source: str) -> JobSpec:
        """Return the specification in a job file."""
        found: JobSpec = self._reader.read((_spec, (source,)))
        return found

    def changes(self, texts: Sequence[str]) -> list[FieldChange]:
        """Return changes that are written as ``ps.replicas=4``."""
        found: list[FieldChange] = self._reader.read((_changes, (list(texts),)))
        return found

    def edited(self, source: str, changes: Sequence[FieldChange]) -> str:
        """Return a job file with changes applied."""
        found: str = self._reader.read((edits.edited, (source, tuple(changes))))
        return found

    def difference(self, before: str, after: str) -> str:
        """Return the difference between two versions of a job file."""
        found: str = self._reader.read((edits.difference, (before, after)))
        return found

    def close(self) -> None:
        """End the process that reads."""
        self._reader.close()


def _answer(question: tuple[Callable[..., Any], tuple[Any, ...]]) -> Any:
    ask, given = question
    return ask(*given)


def _read(source: str) -> LintedFile:
    found = specs.parse_job(source, file=FILE)
    return LintedFile(found.spec, found.text, tuple(linting.lint_job(found)))


def _spec(source: str) -> JobSpec:
    return specs.parse_job(source, file=FILE).spec


def _changes(texts: list[str]) -> list[FieldChange]:
    return [assignments.change(each) for each in texts]
