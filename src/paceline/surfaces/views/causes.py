"""What ``paceline why`` shows: where a job stands, and each cause with what was seen and what to do."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from paceline.diagnosing import topics
from paceline.model.causes import Cause, Evidence, Explanation
from paceline.surfaces.views import cells

_INDENT = 9


def explanation(found: Explanation, *, say: Callable[[str], str], width: int | None) -> Text:
    """Return the answer.

    Args:
        found: the answer.
        say: puts the options that say where the job is into commands.
        width: of the terminal; None: as wide as it takes.
    """
    parts = [_filled("", found.summary, width, indent=0, style="bold")]
    for number, cause in enumerate(found.causes, start=1):
        parts += [Text(), *_cause(number, cause, say, width)]
    if found.unknown:
        parts += [Text(), *(_filled("unknown", each, width, style="yellow") for each in found.unknown)]
    return Text("\n").join(parts)


def _cause(number: int, cause: Cause, say: Callable[[str], str], width: int | None) -> list[Text]:
    code = topics.code(cause.name)
    style = "dim" if cause.is_past else ""
    parts = [_filled(f"{number}.", f"{code} {cause.what}", width, indent=3, style=style)]
    parts += [_filled("   seen", _seen(each), width) for each in cause.evidence]
    parts += [_filled("   next", say(each), width, style="cyan") for each in cause.next_steps]
    return parts


def _seen(each: Evidence) -> str:
    at = "" if each.at is None else f"{cells.moment(each.at)} "
    often = f" ({each.count} times)" if each.count > 1 else ""
    return f"{at}{each.text}{often}"


def _filled(label: str, text: str, width: int | None, *, indent: int = _INDENT, style: str = "") -> Text:
    """Return text behind a label; what is too long goes on below."""
    room = 10**6 if width is None else max(20, width - indent)
    lines = cells.wrapped(cells.clean(text), room)
    made = Text()
    made.append(f"{label:<{indent}}", style="dim")
    made.append(f"\n{' ' * indent}".join(lines), style=style)
    return made
