"""Labelled paragraphs that fit the terminal: a grey label, and text or rows of a diff beside it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from rich.cells import chop_cells
from rich.text import Text

from paceline.surfaces.views import cells

_ANY_WIDTH = 10**6
_LEAST_WIDTH = 20
_DIFF_STYLES = {"+": "green", "-": "red", "@": "dim"}


@dataclasses.dataclass(frozen=True, slots=True)
class Paragraphs:
    """Builds paragraphs no wider than the terminal; a width of None means unlimited."""

    width: int | None

    def filled(self, label: str, *parts: tuple[str, str], indent: int) -> Text:
        """Return texts in their styles, one after the other, wrapped to the width."""
        cleaned = [(cells.clean(text), style) for text, style in parts]
        lines = cells.wrapped(" ".join(text for text, _ in cleaned if text), self._room(indent))
        body = Text(f"\n{' ' * indent}".join(lines))
        # Wrapping only adds or removes blanks, so all other characters keep their order.
        inked = [offset for offset, char in enumerate(body.plain) if not char.isspace()]
        done = 0
        for text, style in cleaned:
            length = sum(not char.isspace() for char in text)
            if length:
                body.stylize(style, inked[done], inked[done + length - 1] + 1)
            done += length
        return Text.assemble((f"{label:<{indent}}", "dim"), body)

    def diff(self, label: str, rows: Sequence[str], *, indent: int) -> Iterator[Text]:
        """Yield the rows of a diff."""
        for number, row in enumerate(rows):
            pieces = chop_cells(cells.clean_line(row), self._room(indent)) or [""]
            body = f"\n{' ' * indent}".join(pieces)
            said = "" if number else label
            yield Text.assemble((f"{said:<{indent}}", "dim"), (body, _DIFF_STYLES.get(row[:1], "")))

    def _room(self, indent: int) -> int:
        return _ANY_WIDTH if self.width is None else max(_LEAST_WIDTH, self.width - indent)
