"""Measurements of many replicas on one grid of time, so that they can be drawn, added and compared.

A measurement counts for the interval before its instant; a cell of the grid gets the mean of what it covers,
weighted by time. A cell that nothing covers is None.
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
#: More lines than this become a band for each role.
MAX_LINES = 8
#: Roles with at most so many replicas stay lines even then.
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
        """Return the mean of what is known; minus infinity when nothing is."""
        return statistics.fmean(known) if (known := known_values(self.values)) else -math.inf


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """All replicas of a role over time, and the one of them with the highest mean."""

    role: Role
    count: int
    low: Values
    median: Values
    high: Values
    highest: ReplicaSeries


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPicture:
    """What one plot shows: lines for few replicas, bands for many."""

    lines: tuple[ReplicaSeries, ...] = ()
    bands: tuple[Band, ...] = ()


def grid(recording: Recording, *, cells: int = MAX_CELLS) -> Grid | None:
    """Return the grid from the start of a run to its last measurement; None when nothing was measured.

    Args:
        recording: of the run.
        cells: at most so many.
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
        items: what was measured of one replica.
        value: the value; None where it was not measured.
        rate: the value is a count within the item's interval, of which the rate per second is wanted.
    """
    told = [
        # An instant counts for the cell it lies in, if for a moment only.
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
    """Return a line for each replica of which the value was measured."""
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
    """Return what is to be drawn of lines: themselves when they are few, else bands of the big roles."""
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
    """Return the values that were measured."""
    return [value for value in values if value is not None]
