"""Rows of stacked bars, each in a row of a table beside its name and its total."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from paceline.surfaces.charts.drawings import LegendKey

#: The full length of a bar.
WIDTH = 1000.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BarPiece:
    """A part of a bar, on a scale up to ``WIDTH``.

    Attributes:
        style: the class of its colour.
        of: what the part stands for.
    """

    left: float
    width: float
    style: str
    of: str
    value: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BarRow:
    """A bar with its name and its total."""

    name: str
    total: float
    pieces: tuple[BarPiece, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A table of bars.

    Attributes:
        name: the title of the table.
        of: the heading of the row names.
        total: the heading of the totals, with their unit.
        shown: formats a value.
        keys: the legend of the colours.
        mark: the place of a line through all bars, on a scale up to ``WIDTH``; None if there is no line.
    """

    name: str
    of: str
    total: str
    rows: tuple[BarRow, ...]
    shown: Callable[[float], str]
    keys: tuple[LegendKey, ...] = ()
    mark: float | None = None


def row(
    name: str, parts: Iterable[tuple[str, str, float]], longest: float, *, total: float | None = None
) -> BarRow:
    """Return a bar.

    Args:
        name: the name of the row.
        parts: the parts from left to right: the style, what the part stands for, its value.
        longest: the value of a bar of full length.
        total: the number beside the bar; None means the sum of its parts.
    """
    pieces, left, summed = [], 0.0, 0.0
    for style, of, value in parts:
        width = value / longest * WIDTH if longest else 0.0
        if width > 0:
            pieces.append(BarPiece(left=left, width=width, style=style, of=of, value=value))
        left, summed = left + width, summed + value
    return BarRow(name=name, total=summed if total is None else total, pieces=tuple(pieces))
