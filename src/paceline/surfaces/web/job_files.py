"""Reads job files, and changes of them, that come in requests.

They are read in a process of their own, which is given up when it takes too long or too much: so one request
keeps neither the event loop nor the memory of the server.
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

#: As problems call it: in a request it has no name.
FILE = "job file"


@dataclasses.dataclass(frozen=True, slots=True)
class LintedFile:
    """A job file of a request.

    Attributes:
        text: as it is kept.
        findings: what lint says of it.
    """

    spec: JobSpec
    text: str
    findings: tuple[Finding, ...]


class JobFiles:
    """Reads them; every method raises ``InvalidInput`` for what is wrong, or cannot be read in time."""

    def __init__(self) -> None:
        self._reader: BoundedReader[tuple[Callable[..., Any], tuple[Any, ...]], Any] = BoundedReader(_answer)

    def read(self, source: str) -> LintedFile:
        """Return a job file."""
        found: LintedFile = self._reader.read((_read, (source,)))
        return found

    def spec(self, source: str) -> JobSpec:
        """Return what a job file asks for."""
        found: JobSpec = self._reader.read((_spec, (source,)))
        return found

    def changes(self, texts: Sequence[str]) -> list[FieldChange]:
        """Return changes that are written as ``ps.replicas=4``."""
        found: list[FieldChange] = self._reader.read((_changes, (list(texts),)))
        return found

    def edited(self, source: str, changes: Sequence[FieldChange]) -> str:
        """Return a job file with changes made in it."""
        found: str = self._reader.read((edits.edited, (source, tuple(changes))))
        return found

    def difference(self, before: str, after: str) -> str:
        """Return what is different in a job file."""
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
