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
        style: which colour.
        of: what it stands for.
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
        name: what it shows.
        of: what the rows are.
        total: what stands beside the bars, with its unit.
        shown: writes a value.
        keys: what the colours stand for.
        mark: the place of a line through all bars, on a scale up to ``WIDTH``; None: there is none.
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
        name: of the row.
        parts: from left to right: the style, what it stands for, its value.
        longest: the value that the full length stands for.
        total: what stands beside the bar; None: the sum of its parts.
    """
    pieces, left, summed = [], 0.0, 0.0
    for style, of, value in parts:
        width = value / longest * WIDTH if longest else 0.0
        if width > 0:
            pieces.append(BarPiece(left=left, width=width, style=style, of=of, value=value))
        left, summed = left + width, summed + value
    return BarRow(name=name, total=summed if total is None else total, pieces=tuple(pieces))
