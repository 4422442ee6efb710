"""Tables that fit the terminal: columns are shortened or left out until a row is no wider than it.

Rich's own tables shrink every column; here each column says whether it may be shortened or left out. The
result is plain ``Text``, so it can be printed at any width, even wider than the terminal.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from paceline.surfaces.views import cells

GAP = 2
#: If the columns at their smallest widths still do not fit, every column may be shortened to this width.
HARD_FLOOR = 4
HEADER_STYLE = "dim"
NEW_LINE = ("\n", "")


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """A column of a table.

    Attributes:
        shrink_to: the width in terminal columns to which it may be shortened; None means not at all.
        drop: 0 if the column is never left out; otherwise columns with the highest number are left out first.
        styles: a style for each cell, or empty.
    """

    header: str
    cells: Sequence[str]
    right: bool = False
    shrink_to: int | None = None
    drop: int = 0
    styles: Sequence[str] = ()

    @functools.cached_property
    def natural_width(self) -> int:
        """The width of the longest cell in terminal columns."""
        return max(cell_len(self.header), *(cell_len(cell) for cell in self.cells), 0)


@dataclasses.dataclass(frozen=True, slots=True)
class Fitted:
    """A table, and the headers of the columns that were left out."""

    text: Text
    dropped: tuple[str, ...]


def fit(columns: Sequence[Column], width: int | None) -> Fitted:
    """Return a table of the columns that fits a width; None means unlimited."""
    shown_columns = list(columns)
    widths = [column.natural_width for column in shown_columns]
    while width is not None and sum(_smallest(shown_columns)) + GAP * (len(shown_columns) - 1) > width:
        candidates = [column for column in shown_columns if column.drop]
        if not candidates:
            break
        shown_columns.remove(max(candidates, key=lambda column: column.drop))
        widths = [column.natural_width for column in shown_columns]
    if width is not None:
        widths = _shrunk(shown_columns, widths, width)
    dropped = tuple(column.header for column in columns if column not in shown_columns)
    return Fitted(_drawn(shown_columns, widths), dropped)


def _smallest(columns: Sequence[Column]) -> list[int]:
    return [
        column.natural_width if column.shrink_to is None else min(column.natural_width, column.shrink_to)
        for column in columns
    ]


def _shrunk(columns: Sequence[Column], widths: list[int], width: int) -> list[int]:
    """Reduce widths to fit: first of columns that may be shortened, then, if needed, of all columns."""
    excess = sum(widths) + GAP * (len(columns) - 1) - width
    floors = _smallest(columns)
    for least in (floors, [HARD_FLOOR] * len(floors)):
        while excess > 0:
            room = [width - floor for width, floor in zip(widths, least, strict=True)]
            index = max(range(len(room)), key=room.__getitem__)
            if room[index] <= 0:
                break
            widths[index] -= 1
            excess -= 1
    return widths


def _drawn(columns: Sequence[Column], widths: Sequence[int]) -> Text:
    lines = [_line(columns, widths, [(column.header, HEADER_STYLE) for column in columns])]
    for row in range(max((len(column.cells) for column in columns), default=0)):
        found = [(c.cells[row], c.styles[row] if c.styles else "") for c in columns]
        lines.append(_line(columns, widths, found))
    parts = [part for line in lines for part in (*line, NEW_LINE)]
    # Rich's work grows with the number of parts, so adjacent parts of the same style are joined.
    alike = itertools.groupby(parts[:-1], key=lambda part: part[1])
    return Text.assemble(*(("".join(content for content, _ in run), style) for style, run in alike))


def _line(
    columns: Sequence[Column], widths: Sequence[int], contents: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return the parts of a line with their styles, without trailing blanks."""
    parts: list[tuple[str, str]] = []
    for column, width, (content, style) in zip(columns, widths, contents, strict=True):
        if parts:
            parts.append((" " * GAP, ""))
        parts.append((_padded(content, width, right=column.right), style))
    while parts and not parts[-1][0].rstrip():
        parts.pop()
    if parts:
        parts[-1] = (parts[-1][0].rstrip(), parts[-1][1])
    return parts


def _padded(content: str, width: int, *, right: bool) -> str:
    shown = cells.shorten(content, width)
    padding = " " * (width - cell_len(shown))
    return padding + shown if right else shown + padding
