"""Where the time of a traced step goes, trainer by trainer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes

from paceline.model import trace_summaries
from paceline.model.recordings import Recording
from paceline.model.roles import ReplicaId
from paceline.model.trace_summaries import Shares
from paceline.model.traces import Split
from paceline.surfaces.reports import drawings, texts
from paceline.surfaces.reports.drawings import Plot

#: More trainers are not drawn; those with the longest steps are.
MAX_BARS = 12
_BAR_INCHES = 0.3
#: Each part of a step: its words, its colour and its hatching.
_PARTS: tuple[tuple[str, str, str | None, Callable[[Split], float]], ...] = (
    ("pull", drawings.ORANGE, "//", lambda split: split.pull_microseconds),
    ("compute", drawings.BLUE, None, lambda split: split.compute_microseconds),
    ("push", drawings.VERMILION, "\\\\", lambda split: split.push_microseconds),
    ("wait for input", drawings.PURPLE, "..", lambda split: split.input_wait_microseconds or 0.0),
    ("other", drawings.MUTED, None, lambda split: split.other_microseconds),
)


def split(recording: Recording) -> Plot | None:
    """Return the split of a mean step of each trainer; None: no step was traced."""
    found = [(trace.trainer, trace_summaries.mean_split(trace)) for trace in recording.traces]
    known = [(trainer, mean) for trainer, mean in found if mean is not None]
    shares = trace_summaries.shares(recording.traces)
    if not known or shares is None:
        return None
    title = "Split of a traced step"
    longest = sorted(known, key=lambda pair: -round(pair[1].total_microseconds))[:MAX_BARS]
    shown = sorted(longest, key=lambda pair: ReplicaId.parse(pair[0]))
    with drawings.figure(height=max(1.9, 1.15 + _BAR_INCHES * len(shown))) as (made, (axes,)):
        _draw(axes, shown)
        svg = drawings.svg(made, name="split", title=title)
    return Plot(name="split", title=title, svg=svg, caption=_caption(shares, len(shown), len(known)))


def _draw(axes: Axes, shown: Sequence[tuple[str, Split]]) -> None:
    rows = range(len(shown))
    left = [0.0] * len(shown)
    for name, colour, hatch, part in _PARTS:
        values = [part(mean) / 1000 for _, mean in shown]
        if any(values):
            axes.barh(
                rows, values, left=left, height=0.62, color=colour, hatch=hatch, linewidth=0, label=name
            )
        left = [before + value for before, value in zip(left, values, strict=True)]
    axes.set_yticks(rows, [trainer for trainer, _ in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("Milliseconds of a step")
    drawings.legend(axes)


def _caption(shares: Shares, shown: int, count: int) -> str:
    parts = [
        f"pull {texts.share(shares.pull)}",
        f"compute {texts.share(shares.compute)}",
        f"push {texts.share(shares.push)}",
    ]
    if shares.input_wait is not None:
        parts.append(f"wait for input {texts.share(shares.input_wait)}")
    sentence = f"Of a traced step, on average over {count} trainer{'s' * (count > 1)}: {', '.join(parts)}"
    if shown < count:
        sentence += f". Shown are the {shown} with the longest steps"
    return sentence + "."
