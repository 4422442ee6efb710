"""Figures over time: throughput, loss, CPU, memory, network. Each is None if its values were not measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

from paceline.model import grids, quantities
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import Sample, StepReport, by_replica
from paceline.model.measures.snapshots import ReplicaSnapshot, Snapshot
from paceline.model.roles import ReplicaId, Role
from paceline.surfaces.charts import drawings, scales
from paceline.surfaces.charts.drawings import Area, Chart, Polyline, Shape
from paceline.surfaces.charts.scales import Scale
from paceline.surfaces.reports import captions, figures, series, texts
from paceline.surfaces.reports.figures import ReportFigure

#: A limit above this multiple of the highest measured value is not drawn: it would compress the rest.
_MOST_TIMES = 3.0
_MOST_LIMITS = 4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GriddedRun:
    """A run's measurements by replica, on the grid that all its plots share."""

    grid: grids.Grid
    samples: Mapping[ReplicaId, Sequence[Sample]]
    steps: Mapping[ReplicaId, Sequence[StepReport]]
    snapshot: Snapshot

    @classmethod
    def of(cls, recording: Recording, snapshot: Snapshot) -> GriddedRun | None:
        """Return the measurements of a run; None if there are none."""
        grid = series.grid(recording)
        if grid is None:
            return None
        return cls(
            grid=grid,
            samples=by_replica(recording.samples),
            steps=by_replica(recording.steps),
            snapshot=snapshot,
        )


def throughput(measured: GriddedRun) -> ReportFigure | None:
    """Return the figure of examples per second, of all trainers together and of each."""
    lines = series.lines(measured.grid, measured.steps, lambda r: r.examples, rate=True)
    if not lines:
        return None
    title, grid, picture = "Throughput", measured.grid, series.picture(lines)
    total = _line(grid, series.total(lines), "tint-ink thick", "all together") if len(lines) > 1 else None
    each = list(_shapes(grid, picture))
    # A single trainer of many would be a line at the bottom of a chart with the total.
    of_all: list[Shape] = [total] if total else []
    parts = [of_all, each] if picture.bands else [[*of_all, *each]]
    charts = [_chart(title, grid, part, "Examples per second", shown=scales.whole) for part in parts]
    return ReportFigure(
        name="throughput",
        title=title,
        charts=tuple(charts),
        caption=captions.throughput(measured.snapshot),
        wide=len(charts) > 1,
    )


def loss(measured: GriddedRun) -> ReportFigure | None:
    """Return the figure of the loss that the trainers reported."""
    lines = series.lines(measured.grid, measured.steps, lambda r: r.loss)
    if not lines:
        return None
    title, shapes = "Loss", list(_shapes(measured.grid, series.picture(lines)))
    values = [value for line in lines for value in series.known_values(line.values)]
    low, high = min(values), max(values)
    room = 0.05 * (high - low)
    up = scales.between(low - room, high + room, "Loss (mean of a report's steps)")
    reports = [report for reports in measured.steps.values() for report in reports]
    caption = captions.loss(measured.snapshot, sorted(reports, key=lambda report: report.at))
    chart = drawings.chart(title, _across(measured.grid), up, shapes)
    return ReportFigure(name="loss", title=title, charts=(chart,), caption=caption)


def cpu(measured: GriddedRun) -> ReportFigure | None:
    """Return the figure of the cores that each replica used, with the limits."""
    lines = series.lines(measured.grid, measured.samples, lambda s: s.cpu_cores)
    if not lines:
        return None
    limits = _limits(
        measured,
        lambda r: r.cpu_limit_cores,
        highest=_highest(lines),
        shown=lambda value: f"{value:g} core{'s' * (value != 1)}",
    )
    shapes = [*_shapes(measured.grid, series.picture(lines)), *limits]
    chart = _chart("CPU", measured.grid, shapes, "Cores in use")
    return ReportFigure(name="cpu", title="CPU", charts=(chart,), caption=captions.cpu(measured.snapshot))


def memory(measured: GriddedRun) -> ReportFigure | None:
    """Return the figure of each replica's memory, with the limits."""
    lines = series.lines(measured.grid, measured.samples, lambda s: s.memory_bytes)
    if not lines:
        return None
    highest = _highest(lines)
    scale, unit = scales.of_bytes(highest)
    limits = _limits(
        measured,
        lambda r: r.memory_limit_bytes,
        highest=highest,
        shown=quantities.format_bytes,
        scale=scale,
    )
    shapes = [*_shapes(measured.grid, series.picture(lines), scale), *limits]
    chart = _chart("Memory", measured.grid, shapes, f"Memory ({unit})")
    caption = captions.memory(measured.snapshot)
    return ReportFigure(name="memory", title="Memory", charts=(chart,), caption=caption)


def network(measured: GriddedRun) -> ReportFigure | None:
    """Return the figure of the bytes that each replica received and sent, on the same scale."""
    received = series.lines(measured.grid, measured.samples, lambda s: s.network_received_bytes, rate=True)
    sent = series.lines(measured.grid, measured.samples, lambda s: s.network_sent_bytes, rate=True)
    if not received and not sent:
        return None
    highest = max(_highest(received), _highest(sent))
    scale, unit = scales.of_bytes(highest)
    charts = tuple(
        drawings.chart(
            words,
            _across(measured.grid),
            scales.up_to(highest / scale, f"{words} ({unit}/s)"),
            _shapes(measured.grid, series.picture(lines), scale),
        )
        for lines, words in ((received, "Received"), (sent, "Sent"))
        if lines
    )
    caption = captions.network(measured.snapshot)
    return ReportFigure(name="network", title="Network", charts=charts, caption=caption, wide=True)


def _across(grid: grids.Grid) -> Scale:
    return scales.since_start(grid.seconds)[1]


def _chart(
    title: str,
    grid: grids.Grid,
    shapes: Sequence[Shape],
    up: str,
    *,
    shown: Callable[[float], str] | None = None,
) -> Chart:
    """Return a chart whose scale reaches from 0 to the highest value in the shapes."""
    heights = [
        height
        for shape in shapes
        if isinstance(shape, Polyline | Area)
        for _, *values in shape.points
        for height in series.known_values(values)
    ]
    return drawings.chart(
        title, _across(grid), scales.up_to(max(heights, default=0.0), up, shown=shown), shapes
    )


def _shapes(grid: grids.Grid, picture: series.SeriesPicture, scale: float = 1.0) -> Iterator[Shape]:
    time, _ = scales.since_start(grid.seconds)
    for band in picture.bands:
        tint, dashes = figures.tint_of(band.role), figures.dashes(band.role)
        yield Area(
            points=[
                (middle / time, _divided(low, scale), _divided(high, scale))
                for middle, low, high in zip(grid.middles, band.low, band.high, strict=True)
            ],
            style=tint,
            key=f"{band.count} {figures.plural(band.role)}, lowest to highest",
        )
        yield _line(grid, band.median, tint + dashes, f"median {band.role}", scale)
        highest = f"{band.highest.replica} (highest)"
        yield _line(grid, band.highest.values, "tint-ink thin" + dashes, highest, scale)
    for line in picture.lines:
        style = figures.tint(line.replica) + figures.dashes(line.replica.role)
        yield _line(grid, line.values, style, str(line.replica), scale)


def _line(grid: grids.Grid, values: series.Values, style: str, key: str, scale: float = 1.0) -> Polyline:
    time, _ = scales.since_start(grid.seconds)
    points = [
        (middle / time, _divided(value, scale)) for middle, value in zip(grid.middles, values, strict=True)
    ]
    return Polyline(points=points, style=style, key=key)


def _divided(value: float | None, scale: float) -> float | None:
    return None if value is None else value / scale


def _limits(
    measured: GriddedRun,
    limit: Callable[[ReplicaSnapshot], float | None],
    *,
    highest: float,
    shown: Callable[[float], str],
    scale: float = 1.0,
) -> Iterator[Polyline]:
    """Yield a line for each limit that is not too high to be drawn."""
    time, _ = scales.since_start(measured.grid.seconds)
    roles: dict[float, dict[Role, None]] = {}
    for replica in measured.snapshot.replicas:
        if (value := limit(replica)) is not None:
            roles.setdefault(value, {})[replica.replica.role] = None
    for value, names in sorted(roles.items())[:_MOST_LIMITS]:
        if value <= _MOST_TIMES * highest:
            who = texts.joined([figures.plural(role) for role in names])
            yield Polyline(
                points=[(0.0, value / scale), (measured.grid.seconds / time, value / scale)],
                style="tint-muted dash-short",
                key=f"limit of {who}: {shown(value)}",
            )


def _highest(lines: Sequence[series.ReplicaSeries]) -> float:
    return max((value for line in lines for value in series.known_values(line.values)), default=0.0)
