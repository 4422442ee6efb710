"""Results of checks of a machine, a cluster or a script, with advice."""

from __future__ import annotations

import dataclasses
import enum


class CheckState(enum.StrEnum):
    """How a check went; only ``failed`` keeps Paceline from working."""

    OK = "ok"
    MISSING = "missing"
    FAILED = "failed"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What one check found, and what to do about it."""

    name: str
    state: CheckState
    detail: str
    advice: str = ""
