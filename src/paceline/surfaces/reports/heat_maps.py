"""The load of the parameter servers over time: a row for each server, darker at busier times."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from paceline.diagnosing import usages
from paceline.diagnosing.cases import Case
from paceline.model.grids import Grid
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import Sample, by_replica
from paceline.model.roles import ReplicaId, Role
from paceline.surfaces.charts import drawings, scales
from paceline.surfaces.charts.drawings import Boxes, Chart
from paceline.surfaces.reports import series, texts
from paceline.surfaces.reports.figures import ReportFigure
from paceline.surfaces.reports.series import ReplicaSeries

#: At most this many PS are drawn, the busiest ones.
MAX_ROWS = 20
MAX_CELLS = 90
#: The number of distinguishable shades, each a class of charts.css; fewer shades make the page smaller.
SHADES = 8


def load(recording: Recording) -> ReportFigure | None:
    """Return the CPU of each PS over time, as a share of its cores; None if nothing was measured.

    If the cores of some PS are unknown, the CPU is shown as a share of the highest load of all PS.
    """
    grid = series.grid(recording, cells=MAX_CELLS)
    samples = [sample for sample in recording.samples if sample.replica.role is Role.PS]
    if grid is None or not samples:
        return None
    lines = series.lines(grid, by_replica(samples), lambda sample: sample.cpu_cores)
    if not lines:
        return None
    cores = _cores(recording, samples)
    known = all(line.replica in cores for line in lines)
    top = max(value for line in lines for value in series.known_values(line.values)) or 1.0
    shares = [_scaled(line, cores[line.replica] if known else top) for line in sorted(lines, key=_by_name)]
    shown = shares
    if len(shares) > MAX_ROWS:
        busiest = sorted(shares, key=lambda line: -line.mean)[:MAX_ROWS]
        shown = sorted(busiest, key=_by_name)
    title = "Load of each PS over time"
    chart = _chart(title, grid, shown, "cores that it has" if known else "highest load of all")
    caption = _caption(shares, shown, known=known)
    return ReportFigure(name="load", title=title, charts=(chart,), caption=caption, wide=True)


def _by_name(line: ReplicaSeries) -> ReplicaId:
    return line.replica


def _cores(recording: Recording, samples: Sequence[Sample]) -> dict[ReplicaId, float]:
    """Return how many cores each PS may use: its own limit, or the cores that it shares with others."""
    limits = {each.replica: each.cpu_limit_cores for each in samples if each.cpu_limit_cores}
    if len(limits) == len({each.replica for each in samples}):
        return limits
    case = Case.of(recording)
    found = {each.replica: usages.cores(case, each) for each in case.servers}
    return limits | {replica: cores for replica, cores in found.items() if cores}


def _scaled(line: ReplicaSeries, cores: float) -> ReplicaSeries:
    values = tuple(None if value is None else min(1.0, max(0.0, value / cores)) for value in line.values)
    return ReplicaSeries(replica=line.replica, values=values)


def _chart(title: str, grid: Grid, shown: Sequence[ReplicaSeries], of: str) -> Chart:
    time, across = scales.since_start(grid.seconds)
    width = grid.cell_seconds / time
    step = 100 // SHADES
    words = {0: f"up to {step} % of the {of}", SHADES // 2: "about half", SHADES - 1: f"above {100 - step} %"}
    shapes = [
        Boxes(
            boxes=[
                (since * width, until * width, row + 0.06, row + 0.94)
                for row, line in enumerate(shown)
                for since, until, found in _runs(line.values)
                if found == shade
            ],
            style=f"tint-vermilion shade-{shade}",
            key=words.get(shade, ""),
        )
        for shade in range(SHADES)
    ]
    return drawings.chart(
        title,
        dataclasses.replace(across, has_rules=False),
        dataclasses.replace(scales.rows([str(line.replica) for line in shown]), has_rules=False),
        shapes,
        width=drawings.WIDE,
    )


def _runs(values: series.Values) -> list[tuple[int, int, int]]:
    """Return stretches of cells with the same shade: the first cell, the end (exclusive) and the shade."""
    found: list[tuple[int, int, int]] = []
    for cell, value in enumerate(values):
        if value is None:
            continue
        shade = min(SHADES - 1, int(value * SHADES))
        if found and found[-1][1] == cell and found[-1][2] == shade:
            found[-1] = (found[-1][0], cell + 1, shade)
        else:
            found.append((cell, cell + 1, shade))
    return found


def _caption(lines: Sequence[ReplicaSeries], shown: Sequence[ReplicaSeries], *, known: bool) -> str:
    highest = max(lines, key=lambda line: line.mean)
    lowest = min(lines, key=lambda line: line.mean)
    of = "of its cores" if known else "of the highest load"
    sentence = f"{highest.replica} uses {texts.share(highest.mean)} {of} on average"
    if len(lines) > 1:
        sentence += f", {lowest.replica} {texts.share(lowest.mean)}"
    if len(shown) < len(lines):
        sentence += f". Shown are the {len(shown)} busiest of {len(lines)} PS"
    return sentence + "."
