"""Puts measurements of many replicas on one time grid, so that they can be drawn, added and compared.

A measurement holds for the interval before its time. A cell of the grid gets the mean of the measurements
that overlap it, weighted by time; a cell without measurements is None.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy

from paceline.model import grids
from paceline.model.grids import Grid
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import Sample, StepReport
from paceline.model.roles import ReplicaId, Role

MAX_CELLS = 180
#: More lines than this are replaced by a band for each role.
MAX_LINES = 8
#: Roles with at most this many replicas are still drawn as lines.
MAX_LINES_PER_ROLE = 4

Timed = TypeVar("Timed", Sample, StepReport)
Values = tuple[float | None, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSeries:
    """One replica over time."""

    replica: ReplicaId
    values: Values

    @property
    def mean(self) -> float:
        """The mean of the known values; minus infinity if there are none."""
        return statistics.fmean(known) if (known := known_values(self.values)) else -math.inf


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """All replicas of a role over time, and the replica with the highest mean."""

    role: Role
    count: int
    low: Values
    median: Values
    high: Values
    highest: ReplicaSeries


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPicture:
    """The contents of a plot: lines for few replicas, bands for many."""

    lines: tuple[ReplicaSeries, ...] = ()
    bands: tuple[Band, ...] = ()


def grid(recording: Recording, *, cells: int = MAX_CELLS) -> Grid | None:
    """Return the grid from the start of a run to its last measurement; None if nothing was measured.

    Args:
        recording: the recording of the run.
        cells: the most cells of the grid.
    """
    items: list[Sample | StepReport] = [*recording.samples, *recording.steps]
    if not items:
        return None
    widths = [item.interval_seconds for item in items if item.interval_seconds]
    width = statistics.median(widths) if widths else 1.0
    first = min(item.at - (item.interval_seconds or 0.0) for item in items)
    started = recording.run.started_at
    since = first if started is None else min(first, started)
    seconds = max(item.at for item in items) - since
    count = max(1, min(cells, math.ceil(seconds / max(width, 1e-3))))
    return Grid(since, max(seconds, 1e-3) / count, count)


def mean_over(
    grid: Grid, items: Iterable[Timed], value: Callable[[Timed], float | None], *, rate: bool = False
) -> Values:
    """Return the mean of a value in each cell.

    Args:
        grid: the cells.
        items: the measurements of one replica.
        value: returns the value of a measurement; None if it was not measured.
        rate: whether the value is a count within the item's interval, to be converted to a rate per second.
    """
    told = [
        # A measurement without an interval counts for a moment in the cell that contains its time.
        (item.at, item.interval_seconds or (0.0 if rate else 1e-6), found)
        for item in items
        if (found := value(item)) is not None
    ]
    if not told:
        return (None,) * grid.cells
    at, interval, level = numpy.array(told, dtype=float).T
    counts = numpy.isfinite(level) & (interval > 0)
    at, interval, level = at[counts], interval[counts], level[counts]
    sums, seconds = grids.spread(grid, at - interval, at, level / interval if rate else level)
    cells = zip(sums[0], seconds[0], strict=True)
    return tuple(float(total / time) if time > 0 else None for total, time in cells)


def lines(
    grid: Grid,
    items: Mapping[ReplicaId, Sequence[Timed]],
    value: Callable[[Timed], float | None],
    *,
    rate: bool = False,
) -> list[ReplicaSeries]:
    """Return a line for each replica with measured values."""
    found = [
        ReplicaSeries(replica=replica, values=mean_over(grid, measured, value, rate=rate))
        for replica, measured in sorted(items.items())
    ]
    return [line for line in found if known_values(line.values)]


def total(found: Sequence[ReplicaSeries]) -> Values:
    """Return the sum of lines in each cell; a cell that no line covers is None."""
    cells = zip(*(line.values for line in found), strict=True)
    return tuple(sum(known) if (known := known_values(cell)) else None for cell in cells)


def picture(found: Sequence[ReplicaSeries]) -> SeriesPicture:
    """Return the lines themselves if they are few, else bands for roles with many replicas."""
    if len(found) <= MAX_LINES:
        return SeriesPicture(lines=tuple(found))
    by_role: dict[Role, list[ReplicaSeries]] = {}
    for line in found:
        by_role.setdefault(line.replica.role, []).append(line)
    few = [line for group in by_role.values() if len(group) <= MAX_LINES_PER_ROLE for line in group]
    many = [_band(role, group) for role, group in by_role.items() if len(group) > MAX_LINES_PER_ROLE]
    return SeriesPicture(lines=tuple(few), bands=tuple(many))


def _band(role: Role, group: Sequence[ReplicaSeries]) -> Band:
    cells = [sorted(known_values(cell)) for cell in zip(*(line.values for line in group), strict=True)]
    return Band(
        role=role,
        count=len(group),
        low=tuple(cell[0] if cell else None for cell in cells),
        median=tuple(statistics.median(cell) if cell else None for cell in cells),
        high=tuple(cell[-1] if cell else None for cell in cells),
        highest=max(group, key=lambda line: line.mean),
    )


def known_values(values: Iterable[float | None]) -> list[float]:
    """Return the values that are not None."""
    return [value for value in values if value is not None]
