"""The colours of phases, roles and severities; a terminal without colours shows the same words."""

from __future__ import annotations

from paceline.model.explanations.findings import Severity
from paceline.model.roles import Role

LOST = "lost"

_PHASES = {
    "running": "green",
    "succeeded": "green",
    "failed": "bold red",
    LOST: "bold red",
    "stopped": "yellow",
    "stopping": "yellow",
    "restarting": "yellow",
    "backing-off": "yellow",
    "pending": "cyan",
    "starting": "cyan",
}

_ROLES = {Role.PS: "magenta", Role.WORKER: "cyan", Role.CHIEF: "blue", Role.EVALUATOR: "yellow"}

_SEVERITIES = {Severity.INFO: "cyan", Severity.WARNING: "yellow", Severity.ERROR: "bold red"}

HOT = "bold red"


def of_phase(phase: str) -> str:
    """Return the style of a job's or a replica's phase, or of ``lost``."""
    return _PHASES.get(phase, "")


def of_role(role: Role) -> str:
    """Return the style of a role."""
    return _ROLES[role]


def of_severity(severity: Severity) -> str:
    """Return the style of a finding's severity."""
    return _SEVERITIES[severity]
