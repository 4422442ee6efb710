"""Cells of equal width over time, with measurements spread over them.

A measurement counts for the interval before its instant, in proportion to how long it covers a cell.
"""

from __future__ import annotations

import dataclasses

import numpy
import numpy.typing as npt

Array = npt.NDArray[numpy.float64]


@dataclasses.dataclass(frozen=True, slots=True)
class Grid:
    """Cells of equal width from ``since`` (Unix seconds) on."""

    since: float
    cell_seconds: float
    cells: int

    @property
    def middles(self) -> list[float]:
        """Return the middle of each cell, in seconds after ``since``."""
        return [(cell + 0.5) * self.cell_seconds for cell in range(self.cells)]

    @property
    def seconds(self) -> float:
        """Return the width of all cells together."""
        return self.cells * self.cell_seconds


def spread(
    grid: Grid,
    since: Array,
    until: Array,
    level: Array,
    *,
    row: npt.NDArray[numpy.intp] | None = None,
    rows: int = 1,
) -> tuple[Array, Array]:
    """Return for each cell the sum of levels weighted by the seconds they cover it, and the seconds covered.

    Args:
        grid: the cells.
        since: when each level began (Unix seconds).
        until: when each level ended.
        level: the levels.
        row: the row of each level; None: all belong to the first row.
        rows: the number of rows, each with cells of its own.
    """
    start, end = (since - grid.since) / grid.cell_seconds, (until - grid.since) / grid.cell_seconds
    sums, seconds = numpy.zeros((rows, grid.cells)), numpy.zeros((rows, grid.cells))
    of = numpy.zeros(len(level), dtype=numpy.intp) if row is None else row
    first = numpy.floor(start)
    longest = int(numpy.max(numpy.ceil(end) - first, initial=0.0))
    for further in range(min(longest, grid.cells + 1)):
        cell = numpy.maximum(first, -1.0) + further
        overlap = (numpy.minimum(end, cell + 1) - numpy.maximum(start, cell)) * grid.cell_seconds
        within = (overlap > 0) & (cell >= 0) & (cell < grid.cells)
        place = of[within], cell[within].astype(int)
        numpy.add.at(sums, place, level[within] * overlap[within])
        numpy.add.at(seconds, place, overlap[within])
    return sums, seconds
