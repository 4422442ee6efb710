"""Plots over time: throughput, loss, CPU, memory, network. Each is None when nothing of it was measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes

from paceline.model import grids, quantities
from paceline.model.recordings import Recording
from paceline.model.roles import ReplicaId, Role
from paceline.model.samples import Sample, StepReport, by_replica
from paceline.services import summaries
from paceline.surfaces.reports import captions, drawings, series, texts
from paceline.surfaces.reports.drawings import Plot


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """A run's measurements by replica, on the grid that all its plots share."""

    grid: grids.Grid
    samples: Mapping[ReplicaId, Sequence[Sample]]
    steps: Mapping[ReplicaId, Sequence[StepReport]]
    summary: summaries.Summary

    @classmethod
    def of(cls, recording: Recording, summary: summaries.Summary) -> Measured | None:
        """Return the measurements of a run; None when there are none."""
        grid = series.grid(recording)
        if grid is None:
            return None
        return cls(grid, by_replica(recording.samples), by_replica(recording.steps), summary)


def throughput(measured: Measured) -> Plot | None:
    """Return examples per second of all trainers together and of each."""
    lines = series.lines(measured.grid, measured.steps, lambda r: r.examples, rate=True)
    if not lines:
        return None
    title, picture = "Throughput", series.picture(lines)
    # One of many trainers would be a line at the bottom of the same panel.
    panels = 2 if picture.bands else 1
    width = drawings.WIDTH_INCHES * panels
    with drawings.figure(panels=panels, width=width) as (made, axes):
        if len(lines) > 1:
            total = series.total(lines)
            _line(axes[0], measured.grid, total, label="all together", colour=drawings.INK, width=2.0)
        _draw(axes[-1], measured.grid, picture)
        for one in axes:
            _finish(one, measured.grid, "Examples per second")
            one.yaxis.set_major_formatter(lambda value, _: texts.whole(value))
        svg = drawings.svg(made, name="throughput", title=title)
    return Plot(
        name="throughput", title=title, svg=svg, caption=captions.throughput(measured.summary),
        wide=panels == 2,
    )  # fmt: skip


def loss(measured: Measured) -> Plot | None:
    """Return the loss as the trainers reported it."""
    lines = series.lines(measured.grid, measured.steps, lambda r: r.loss)
    if not lines:
        return None
    title = "Loss"
    with drawings.figure() as (made, (axes,)):
        _draw(axes, measured.grid, series.picture(lines))
        _finish(axes, measured.grid, "Loss (mean of a report's steps)", from_zero=False)
        svg = drawings.svg(made, name="loss", title=title)
    reports = [report for reports in measured.steps.values() for report in reports]
    caption = captions.loss(measured.summary, sorted(reports, key=lambda report: report.at))
    return Plot(name="loss", title=title, svg=svg, caption=caption)


def cpu(measured: Measured) -> Plot | None:
    """Return the cores that each replica kept busy, and their limits."""
    lines = series.lines(measured.grid, measured.samples, lambda s: s.cpu_cores)
    if not lines:
        return None
    title = "CPU"
    with drawings.figure() as (made, (axes,)):
        _draw(axes, measured.grid, series.picture(lines))
        _limits(
            axes,
            measured.summary,
            lambda r: r.cpu_limit_cores,
            scale=1.0,
            shown=lambda value: f"{value:g} core{'s' * (value != 1)}",
        )
        _finish(axes, measured.grid, "Cores in use")
        svg = drawings.svg(made, name="cpu", title=title)
    return Plot(name="cpu", title=title, svg=svg, caption=captions.cpu(measured.summary))


def memory(measured: Measured) -> Plot | None:
    """Return the memory of each replica, and its limits."""
    lines = series.lines(measured.grid, measured.samples, lambda s: s.memory_bytes)
    if not lines:
        return None
    title = "Memory"
    scale, unit = drawings.byte_scale(_highest(lines))
    with drawings.figure() as (made, (axes,)):
        _draw(axes, measured.grid, series.picture(lines), scale=scale)
        _limits(
            axes, measured.summary, lambda r: r.memory_limit_bytes,
            scale=scale, shown=quantities.format_bytes,
        )  # fmt: skip
        _finish(axes, measured.grid, f"Memory ({unit})")
        svg = drawings.svg(made, name="memory", title=title)
    return Plot(name="memory", title=title, svg=svg, caption=captions.memory(measured.summary))


def network(measured: Measured) -> Plot | None:
    """Return what each replica received and sent."""
    received = series.lines(measured.grid, measured.samples, lambda s: s.network_received_bytes, rate=True)
    sent = series.lines(measured.grid, measured.samples, lambda s: s.network_sent_bytes, rate=True)
    if not received and not sent:
        return None
    title = "Network"
    scale, unit = drawings.byte_scale(max(_highest(received), _highest(sent)))
    top = max(_highest(received), _highest(sent)) / scale * 1.06 or 1.0
    with drawings.figure(panels=2, width=2 * drawings.WIDTH_INCHES) as (made, panels):
        for axes, lines, words in zip(panels, (received, sent), ("Received", "Sent"), strict=True):
            _draw(axes, measured.grid, series.picture(lines), scale=scale)
            _finish(axes, measured.grid, f"{words} ({unit}/s)")
            axes.set_ylim(0, top)
        svg = drawings.svg(made, name="network", title=title)
    caption = captions.network(measured.summary)
    return Plot(name="network", title=title, svg=svg, caption=caption, wide=True)


def _draw(axes: Axes, grid: grids.Grid, picture: series.Picture, *, scale: float = 1.0) -> None:
    for band in picture.bands:
        time, _ = drawings.time_scale(grid.seconds)
        middles = [middle / time for middle in grid.middles]
        colour = drawings.colour_of_role(band.role)
        axes.fill_between(
            middles, drawings.scaled(band.low, scale), drawings.scaled(band.high, scale),
            color=colour, alpha=0.22, linewidth=0,
            label=f"{band.count} {_plural(band.role)}, lowest to highest",
        )  # fmt: skip
        style = drawings.dashes(band.role)
        _line(axes, grid, band.median, label=f"median {band.role}", colour=colour, style=style, scale=scale)
        _line(
            axes, grid, band.highest.values, label=f"{band.highest.replica} (highest)",
            colour=drawings.INK, width=0.9, style=style, scale=scale,
        )  # fmt: skip
    for line in picture.lines:
        _line(
            axes, grid, line.values, label=str(line.replica), colour=drawings.colour(line.replica),
            style=drawings.dashes(line.replica.role), scale=scale,
        )  # fmt: skip


def _line(
    axes: Axes,
    grid: grids.Grid,
    values: Sequence[float | None],
    *,
    label: str,
    colour: str,
    width: float = 1.4,
    style: str | tuple[float, tuple[float, ...]] = "-",
    scale: float = 1.0,
) -> None:
    time, _ = drawings.time_scale(grid.seconds)
    axes.plot(
        [middle / time for middle in grid.middles], drawings.scaled(values, scale),
        label=label, color=colour, linewidth=width, linestyle=style,
        marker=drawings.marker(values), markersize=4,
    )  # fmt: skip


def _limits(
    axes: Axes,
    summary: summaries.Summary,
    limit: Callable[[summaries.ReplicaSummary], float | None],
    *,
    scale: float,
    shown: Callable[[float], str],
) -> None:
    """Draw a line at each limit that is not so high that the rest would be squeezed."""
    roles: dict[float, dict[Role, None]] = {}
    for replica in summary.replicas:
        if (value := limit(replica)) is not None:
            roles.setdefault(value, {})[replica.replica.role] = None
    top = axes.get_ylim()[1]
    for value, names in sorted(roles.items())[:4]:
        if value / scale > 3 * top:
            continue
        axes.axhline(value / scale, color=drawings.MUTED, linewidth=1.0, linestyle=(0, (1.0, 2.0)))
        axes.annotate(
            f"limit of {texts.joined([_plural(role) for role in names])}: {shown(value)}",
            (1.0, value / scale), xycoords=("axes fraction", "data"), xytext=(0, 2),
            textcoords="offset points", ha="right", va="bottom", fontsize=8, color=drawings.MUTED,
        )  # fmt: skip


def _finish(axes: Axes, grid: grids.Grid, label: str, *, from_zero: bool = True) -> None:
    time, unit = drawings.time_scale(grid.seconds)
    axes.set_xlim(0, grid.seconds / time)
    axes.set_xlabel(f"Time since the start ({unit})")
    axes.set_ylabel(label)
    if from_zero:
        axes.set_ylim(0, max(axes.get_ylim()[1] * 1.04, 1e-9))
    drawings.legend(axes)


def _highest(lines: Sequence[series.Line]) -> float:
    return max((value for line in lines for value in series.known_values(line.values)), default=0.0)


def _plural(role: Role) -> str:
    return "PS" if role is Role.PS else f"{role}s"
