"""What a check found: a code, where, why, and what to do."""

from __future__ import annotations

import dataclasses
import enum


class Severity(enum.StrEnum):
    """How bad a finding is, mildest first."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """Position for comparisons; higher is worse."""
        return tuple(Severity).index(self)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TextPosition:
    """A place in a text file; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a rule found.

    Attributes:
        code: the rule's code, such as ``JOB003``.
        path: the field concerned, such as ``spec.roles.ps.cpu``.
        message: what was found, with the numbers.
        fix: what to change.
    """

    code: str
    severity: Severity
    path: str
    message: str
    fix: str
    position: TextPosition | None = None
