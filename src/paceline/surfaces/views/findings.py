"""What a check found: place, severity, code, reason and fix."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.model.findings import Finding, Severity
from paceline.surfaces.views import cells, styles


def findings(found: Sequence[Finding], *, width: int | None) -> RenderableType:
    """Return findings, each with its place, what is the case and what to change."""
    parts: list[RenderableType] = []
    for finding in found:
        line = Text()
        if finding.position is not None:
            line.append(f"{cells.clean(str(finding.position))}: ", style="bold")
        line.append(f"{finding.severity} {finding.code}", style=styles.of_severity(finding.severity))
        line.append(f" {cells.clean(finding.path)}", style="dim")
        parts += [line, _indented(finding.message, width)]
        if finding.fix:
            parts.append(_indented(f"fix: {finding.fix}", width))
    return Group(*parts)


def counted(found: Sequence[Finding]) -> str:
    """Return how many findings there are of each severity, the worst first."""
    counts = [(severity, sum(f.severity is severity for f in found)) for severity in reversed(Severity)]
    said = [f"{count} {severity}{'s' if count > 1 else ''}" for severity, count in counts if count]
    return ", ".join(said) if said else "no findings"


def rule(
    code: str, title: str, severity: Severity, why: str, fix: str, *, width: int | None
) -> RenderableType:
    """Return all that is known about a rule."""
    head = Text()
    head.append(f"{severity} {code}", style=styles.of_severity(severity))
    head.append(f" {title}", style="bold")
    return Group(
        head, Text(), Text("Why", style="bold"), _indented(why, width),
        Text(), Text("Fix", style="bold"), _indented(fix, width),
    )  # fmt: skip


def _indented(text: str, width: int | None) -> Text:
    text = cells.clean(text)
    lines = [text] if width is None else cells.wrapped(text, max(20, width - 2))
    return Text("\n").join(Text(f"  {line}") for line in lines)
