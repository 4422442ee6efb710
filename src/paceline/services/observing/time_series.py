"""The course of a job for charts: the load of its replicas and its training progress on one grid of time.

A course is computed once, from long intervals, and later measurements are added to it. Hence any number of
viewers of a large job, asking every few seconds, cost no more than the look that is taken anyway.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import statistics
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy

from paceline.diagnosing import usages
from paceline.diagnosing.cases import Case
from paceline.model import grids
from paceline.model.grids import Array, Grid
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import EvaluationReport, Measured, Sample, StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.services.life_cycles import StoredJobReader
from paceline.services.observing.diagnosis_runs import REACH_SECONDS, DiagnosisRun

#: The most cells of a course; their width doubles when more would be needed.
MOST_CELLS = 240
#: The narrowest cell, as samples are taken every second.
LEAST_SECONDS = 1.0
#: A cell at either end is left out if trainers cover less than this share of their coverage of the next cell.
WHOLE_SHARE = 0.75


class Gauge(enum.StrEnum):
    """A measurement of a replica's load."""

    CPU = "cpu"
    MEMORY = "memory"
    RECEIVED = "received"
    SENT = "sent"
    THROTTLED = "throttled"
    GPU = "gpu"

    @property
    def unit(self) -> str:
        """The unit of its values; a share is a part of 1."""
        return _UNITS[self]


_UNITS = {
    Gauge.CPU: "cores", Gauge.MEMORY: "bytes", Gauge.RECEIVED: "bytes_per_second",
    Gauge.SENT: "bytes_per_second", Gauge.THROTTLED: "share", Gauge.GPU: "share",
}  # fmt: skip
_FIELDS = {
    Gauge.CPU: "cpu_cores", Gauge.MEMORY: "memory_bytes", Gauge.RECEIVED: "network_received_bytes",
    Gauge.SENT: "network_sent_bytes", Gauge.THROTTLED: "throttled_seconds", Gauge.GPU: "gpu_utilization",
}  # fmt: skip
_ROLES = tuple(Role)
#: Counts per interval, which the course shows as rates.
_RATES = frozenset((Gauge.RECEIVED, Gauge.SENT, Gauge.THROTTLED))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TimeSeries:
    """The course of a job; NaN means not measured.

    Attributes:
        grid: from the job's start to its last measurement.
        replicas: the replicas of the rows, parameter servers first.
        loads: by gauge, a row for each replica and a column for each cell; means over time.
        shares: the same as shares of what a replica may use, where that is known.
        examples_per_second: of all trainers together, in each cell.
        loss: the mean over all trainers, in each cell.
        evaluations: all evaluations, oldest first.
    """

    grid: Grid
    replicas: tuple[ReplicaId, ...] = ()
    loads: Mapping[Gauge, Array] = dataclasses.field(default_factory=dict)
    shares: Mapping[Gauge, Array] = dataclasses.field(default_factory=dict)
    examples_per_second: Array = dataclasses.field(default_factory=lambda: numpy.zeros(0))
    loss: Array = dataclasses.field(default_factory=lambda: numpy.zeros(0))
    evaluations: tuple[EvaluationReport, ...] = ()


class TimeSeriesReader:
    """Follows the course of one job.

    Args:
        jobs: where the job is.
        name: its name.
        look: returns the latest look at the job.
    """

    def __init__(self, jobs: StoredJobReader, name: str, look: Callable[[], DiagnosisRun]) -> None:
        self._jobs, self._name, self._look = jobs, name, look
        self._sums: _Sums | None = None
        self._seen: tuple[float | None, float] = None, -math.inf

    def course(self) -> TimeSeries:
        """Return the course of the job until now.

        Raises:
            NotFound: the job does not exist.
            StoreError: the store or the run's folder cannot be read.
            ClusterError: the cluster does not answer.
        """
        recording = self._look().recording
        run = recording.run
        end = self._end(recording)
        grid = _grid(run.started_at, end, _usual_seconds(recording))
        before, at = self._seen
        goes_on = before == run.finished_at and at >= recording.at - REACH_SECONDS
        case = Case.of(recording)
        cores = {each.replica: usages.cores(case, each) for each in case.snapshot.replicas}
        if self._sums is None or self._sums.grid != grid or not (goes_on or run.phase.is_final):
            self._sums = _Sums(grid)
            if not run.phase.is_final:
                self._add_stored(self._sums, cores)
        self._sums.add_samples(recording.samples, cores)
        self._sums.add_steps(recording.steps)
        self._seen = run.finished_at, recording.at
        return self._sums.course(recording, end)

    def _end(self, recording: Recording) -> float:
        """Return when a job ended, when a lost job was last measured, or else the present."""
        run = recording.run
        if run.phase.is_final and run.finished_at is not None:
            return run.finished_at
        if recording.lost:
            store, stored = self._jobs.stored(self._name)
            return max((each.at for each in store.latest_samples(stored).values()), default=recording.at)
        return recording.at

    def _add_stored(self, sums: _Sums, cores: Mapping[ReplicaId, float | None]) -> None:
        """Add everything that the store has of the job, also from before the reach of a look."""
        store, stored = self._jobs.stored(self._name)
        every = sums.grid.cell_seconds if sums.grid.cell_seconds > LEAST_SECONDS else None
        sums.add_samples(store.samples(stored, every_seconds=every), cores)
        sums.add_steps(store.step_reports(stored, every_seconds=every))


def _usual_seconds(recording: Recording) -> float:
    """Return the usual length of intervals; a look at a large ended job has longer ones."""
    seconds = [each.interval_seconds for each in recording.samples]
    return statistics.median(seconds) if seconds and recording.run.phase.is_final else LEAST_SECONDS


def _grid(started_at: float | None, end: float, usual_seconds: float) -> Grid:
    """Return the grid of a job; it is empty for a job that has not started."""
    if started_at is None or end <= started_at:
        return Grid(end, LEAST_SECONDS, 0)
    width = LEAST_SECONDS
    while width < 0.9 * usual_seconds or (end - math.floor(started_at / width) * width) / width > MOST_CELLS:
        width *= 2
    return Grid(math.floor(started_at / width) * width, width, MOST_CELLS)


class _Means:
    """Time-weighted means of many replicas over the cells of a grid."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._sums = self._seconds = numpy.zeros((0, grid.cells))

    def add(self, rows: Sequence[int], since: Array, until: Array, levels: Array) -> None:
        """Add levels to their rows; values that are not finite are left out."""
        known = numpy.isfinite(levels) & (until > since)
        row = numpy.array(rows, dtype=numpy.intp)[known]
        if not len(row):
            return
        count = max(len(self._sums), int(row.max()) + 1)
        sums, seconds = grids.spread(
            self._grid, since[known], until[known], levels[known], row=row, rows=count
        )
        self._sums = sums + _grown(self._sums, count)
        self._seconds = seconds + _grown(self._seconds, count)

    def means(self, rows: int, cells: int) -> Array:
        """Return the means of the first rows and cells; NaN where nothing was added."""
        sums, seconds = (_grown(each, rows)[:, :cells] for each in (self._sums, self._seconds))
        return _quotient(sums, seconds)

    def covered(self, cells: int) -> Array:
        """Return for how many seconds, over all rows together, each cell has values."""
        seconds: Array = self._seconds[:, :cells].sum(axis=0)
        return seconds


def _grown(array: Array, rows: int) -> Array:
    grown: Array = numpy.pad(array, ((0, rows - len(array)), (0, 0)))
    return grown


class _Sums:
    """The measurements of a job so far, on a grid: each counts once, however often it is added."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._rows: dict[ReplicaId, int] = {}
        self._trainers: dict[ReplicaId, int] = {}
        self._seen: dict[tuple[type, ReplicaId, int], float] = {}
        self._loads = {gauge: _Means(grid) for gauge in Gauge}
        self._shares = {gauge: _Means(grid) for gauge in (Gauge.CPU, Gauge.MEMORY)}
        self._examples, self._loss = _Means(grid), _Means(grid)

    def add_samples(self, found: Iterable[Sample], cores: Mapping[ReplicaId, float | None]) -> None:
        """Add samples.

        Args:
            found: the samples.
            cores: how many cores each replica may use, for samples that do not say it.
        """
        new = self._new(found)
        if not new:
            return
        rows = [self._rows.setdefault(sample.replica, len(self._rows)) for sample in new]
        until = _column(sample.at for sample in new)
        interval = _column(sample.interval_seconds for sample in new)
        measured = until - interval, until
        for gauge in Gauge:
            values = _column(getattr(sample, _FIELDS[gauge]) for sample in new)
            levels = _quotient(values, interval) if gauge in _RATES else values
            self._loads[gauge].add(rows, *measured, levels)
            if gauge is Gauge.CPU:
                limits = _column(sample.cpu_limit_cores or cores.get(sample.replica) for sample in new)
                self._shares[gauge].add(rows, *measured, _quotient(values, limits))
            if gauge is Gauge.MEMORY:
                limits = _column(sample.memory_limit_bytes for sample in new)
                self._shares[gauge].add(rows, *measured, _quotient(values, limits))

    def add_steps(self, found: Iterable[StepReport]) -> None:
        """Add step reports."""
        new = [each for each in self._new(found) if each.interval_seconds]
        if not new:
            return
        rows = [self._trainers.setdefault(each.replica, len(self._trainers)) for each in new]
        until = _column(each.at for each in new)
        interval = _column(each.interval_seconds for each in new)
        examples = _column(each.examples for each in new)
        self._examples.add(rows, until - interval, until, _quotient(examples, interval))
        self._loss.add(rows, until - interval, until, _column(each.loss for each in new))

    def _new(self, found: Iterable[Measured]) -> list[Measured]:
        """Return the measurements that are newer than those added for the same attempt, and note them."""
        new = [each for each in found if each.at > self._seen.get(_owner(each), -math.inf)]
        for each in new:
            self._seen[_owner(each)] = max(each.at, self._seen.get(_owner(each), -math.inf))
        return new

    def course(self, recording: Recording, end: float) -> TimeSeries:
        """Return the course up to a moment."""
        cells = min(self.grid.cells, max(0, math.ceil((end - self.grid.since) / self.grid.cell_seconds)))
        order = sorted(self._rows, key=_place)
        places = [self._rows[each] for each in order]

        def sorted_means(means: _Means) -> Array:
            return means.means(len(places), cells)[places]

        examples, loss = (each.means(len(self._trainers), cells) for each in (self._examples, self._loss))
        if not recording.run.phase.is_final:
            examples[:, self._told(cells) :] = math.nan
        examples[:, _ragged(self._examples.covered(cells))] = math.nan
        return TimeSeries(
            grid=dataclasses.replace(self.grid, cells=cells),
            replicas=tuple(order),
            loads={gauge: sorted_means(means) for gauge, means in self._loads.items()},
            shares={gauge: sorted_means(means) for gauge, means in self._shares.items()},
            examples_per_second=_over_rows(numpy.nansum, examples),
            loss=_over_rows(numpy.nanmean, loss),
            evaluations=tuple(recording.evaluations),
        )

    def _told(self, cells: int) -> int:
        """Return the cell up to which half of the trainers have reported; other reports may still come."""
        latest = {of: at for (kind, of, _), at in sorted(self._seen.items(), key=_time) if kind is StepReport}
        if not latest:
            return cells
        middle = sorted(latest.values())[len(latest) // 2]
        return math.ceil((middle - self.grid.since) / self.grid.cell_seconds)


def _ragged(covered: Array) -> list[int]:
    """Return the cells at both ends that only some trainers cover: they do not represent all trainers."""
    known = numpy.flatnonzero(covered)
    if len(known) < 3:
        return []
    ends = ((known[0], known[1]), (known[-1], known[-2]))
    return [int(end) for end, inner in ends if covered[end] < WHOLE_SHARE * covered[inner]]


def _place(replica: ReplicaId) -> tuple[int, int]:
    return _ROLES.index(replica.role), replica.index


def _time(seen: tuple[object, float]) -> float:
    return seen[1]


def _owner(each: Measured) -> tuple[type, ReplicaId, int]:
    return type(each), each.replica, each.attempt


def _column(values: Iterable[float | None]) -> Array:
    return numpy.array([math.nan if value is None else value for value in values], dtype=float)


def _quotient(values: Array, by: Array) -> Array:
    found: Array = numpy.full(values.shape, math.nan)
    return numpy.divide(values, by, out=found, where=by > 0)


def _over_rows(join: Callable[..., Array], values: Array) -> Array:
    """Return the rows joined into one; NaN where no row has a value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # The mean of nothing is NaN, as it should be.
        joined = join(values, axis=0)
    joined[numpy.isnan(values).all(axis=0)] = math.nan
    return joined
