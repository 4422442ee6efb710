"""What a step moves of each variable, the most first."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from paceline.diagnosing.cases import Case, ShardTraffic
from paceline.model.recordings import Recording
from paceline.model.roles import ReplicaId
from paceline.surfaces.reports import drawings, texts
from paceline.surfaces.reports.drawings import Plot

MAX_BARS = 12
#: Longer names of variables lose their beginning, which most of them share.
MAX_NAME = 34
#: Of more PS some have the same colour; their names stand beside the bars.
MAX_LEGEND = 4
_BAR_INCHES = 0.25


def traffic(recording: Recording) -> Plot | None:
    """Return the traffic of the variables, coloured by their PS; None: it was not measured."""
    measured = [each for each in Case.of(recording).traffic if each.bytes]
    if not measured:
        return None
    title = "Traffic of the variables"
    shown = measured[:MAX_BARS]
    with drawings.figure(height=max(1.7, 0.95 + _BAR_INCHES * len(shown))) as (made, (axes,)):
        _draw(axes, shown)
        svg = drawings.svg(made, name="traffic", title=title)
    return Plot(name="traffic", title=title, svg=svg, caption=_caption(recording, measured, shown))


def _draw(axes: Axes, shown: Sequence[ShardTraffic]) -> None:
    scale, unit = drawings.byte_scale(max(each.bytes or 0.0 for each in shown))
    servers = sorted({ReplicaId.parse(each.server) for each in shown})
    for server in servers:
        rows = [row for row, each in enumerate(shown) if each.server == str(server)]
        axes.barh(
            rows, [(shown[row].bytes or 0.0) / scale for row in rows], height=0.62, linewidth=0,
            color=drawings.colour(server), label=str(server),
        )  # fmt: skip
    axes.set_yticks(range(len(shown)), [_name(each) for each in shown])
    axes.set_ylim(max(1, len(shown)) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(f"{unit} in a step, both ways together")
    if len(servers) <= MAX_LEGEND:
        longest = max(len(_name(each)) for each in shown)
        drawings.legend(axes, characters=drawings.LEGEND_CHARACTERS - longest)


def _name(each: ShardTraffic) -> str:
    name = texts.clean(f"{each.name} ({each.server})")
    return name if len(name) <= MAX_NAME else f"…{name[-MAX_NAME + 1 :]}"


def _caption(recording: Recording, measured: Sequence[ShardTraffic], shown: Sequence[ShardTraffic]) -> str:
    total = sum(each.bytes or 0.0 for each in measured)
    first = measured[0]
    how = "as traced" if recording.traces else "as counted from the ids of batches, for one trainer"
    share = texts.share((first.bytes or 0.0) / total)
    sentence = f"{first.name} on {first.server} has {share} of what a step moves, {how}"
    if len(shown) < len(measured):
        sentence += f". Shown are the {len(shown)} of {len(measured)} parts with the most"
    return sentence + "."
