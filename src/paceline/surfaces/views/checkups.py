"""The output of ``paceline doctor``: a line for each check, with advice if the check does not pass."""

from __future__ import annotations

from rich.text import Text

from paceline.model.explanations.checkups import Check, CheckState
from paceline.surfaces.views import cells

NAME_WIDTH = 16
_STYLES = {CheckState.OK: "green", CheckState.MISSING: "yellow", CheckState.FAILED: "bold red"}


def line(check: Check, *, width: int | None) -> Text:
    """Return a check: its state, what was found, and the advice below."""
    text = Text()
    text.append(f"{check.state!s:<8}", style=_STYLES[check.state])
    text.append(f"{check.name:<{NAME_WIDTH}}")
    indent = 8 + NAME_WIDTH
    room = 10**6 if width is None else max(20, width - indent)
    text.append(f"\n{' ' * indent}".join(cells.wrapped(cells.clean(check.detail), room)))
    if check.advice and check.state is not CheckState.OK:
        for number, piece in enumerate(cells.wrapped(cells.clean(check.advice), room - 2)):
            text.append(f"\n{' ' * indent}{'> ' if number == 0 else '  '}{piece}", style="cyan")
    return text
