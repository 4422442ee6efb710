"""The findings of a check: position, severity, code, message and fix."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.model.explanations.findings import Finding, Severity
from paceline.surfaces.views import cells, styles


def findings(found: Sequence[Finding], *, width: int | None) -> RenderableType:
    """Return findings, each with its position, its message and its fix."""
    parts: list[RenderableType] = []
    for finding in found:
        line = Text()
        if finding.position is not None:
            line.append(f"{cells.clean(str(finding.position))}: ", style="bold")
        line.append(f"{finding.severity} {finding.code}", style=styles.of_severity(finding.severity))
        line.append(f" {cells.clean(finding.path)}", style="dim")
        parts += [line, cells.indented(finding.message, width)]
        if finding.fix:
            parts.append(cells.indented(f"fix: {finding.fix}", width))
    return Group(*parts)


def counted(found: Sequence[Finding]) -> str:
    """Return the number of findings of each severity, the worst severity first."""
    counts = [(severity, sum(f.severity is severity for f in found)) for severity in reversed(Severity)]
    said = [f"{count} {severity}{'s' if count > 1 else ''}" for severity, count in counts if count]
    return ", ".join(said) if said else "no findings"
