"""Plots of the whole run: load of the PS, quality of the model, what a step's time goes into."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from paceline.model.samples import Evaluation
from paceline.services.summaries import Imbalance, ReplicaSummary, Summary
from paceline.surfaces.reports import captions, drawings, texts
from paceline.surfaces.reports.drawings import Plot

#: More bars than this are not drawn; the highest are.
MAX_BARS = 12
_BAR_INCHES = 0.24
_FRAME_INCHES = 0.95


def imbalance(summary: Summary) -> Plot | None:
    """Return the load of each PS against the mean of all."""
    found = [one for name in ("cpu", "network") if (one := summary.imbalance(name)) is not None]
    if not found:
        return None
    title = "Load of the parameter servers"
    rows = min(MAX_BARS, max(len(one.loads) for one in found))
    height = max(1.7, _FRAME_INCHES + rows * _BAR_INCHES * 1.3)
    with drawings.figure(panels=len(found), height=height) as (made, panels):
        for axes, one in zip(panels, found, strict=True):
            _loads(axes, one)
        svg = drawings.svg(made, name="imbalance", title=title)
    caption = captions.imbalance(found)
    if (count := len(found[0].loads)) > MAX_BARS:
        caption += f" Shown are the {MAX_BARS} of {count} PS with the highest load."
    return Plot(name="imbalance", title=title, svg=svg, caption=caption)


def _loads(axes: Axes, one: Imbalance) -> None:
    scale, unit = 1.0, "cores"
    if one.unit != "cores":
        scale, unit = drawings.byte_scale(max(load for _, load in one.loads))
        unit += "/s"
    shown = one.loads
    if len(shown) > MAX_BARS:
        shown = tuple(sorted(one.loads, key=lambda pair: -pair[1])[:MAX_BARS])
    mean = sum(load for _, load in one.loads) / len(one.loads)
    for row, (replica, load) in enumerate(shown):
        hot = one.is_hot and replica == one.hottest
        axes.barh(
            row, load / scale, height=0.62, color=drawings.VERMILION if hot else drawings.SKY,
            hatch="//" if hot else None, linewidth=0,
        )  # fmt: skip
    names = [
        f"{replica} (hot)" if one.is_hot and replica == one.hottest else str(replica) for replica, _ in shown
    ]
    axes.set_yticks(range(len(shown)), names)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.axvline(mean / scale, color=drawings.INK, linewidth=1.2, linestyle=(0, (3, 1.5)))
    axes.set_xlim(0, max(load for _, load in shown) / scale * 1.08)
    axes.grid(visible=False, axis="y")
    what = "CPU" if one.resource == "cpu" else "Network"
    axes.set_xlabel(f"{what} ({unit})")
    title = f"max/mean {texts.ratio(one.max_over_mean)}; dashed: mean"
    axes.set_title(title, fontsize=8.5, loc="left", color=drawings.INK)


def quality(summary: Summary, evaluations: Sequence[Evaluation], best: float | None) -> Plot | None:
    """Return the AUC of each evaluation against the best that is possible."""
    told = [(e.step, e.auc) for e in evaluations if e.auc is not None]
    if not told:
        return None
    title = "Quality"
    steps = [step for step, _ in told if step is not None]
    if len(told) > 1 and len(steps) == len(told) and len(set(steps)) > 1:
        svg = _over_steps(steps, [auc for _, auc in told], best, title)
    else:
        svg = _once(told[-1][1], best, title)
    return Plot(name="quality", title=title, svg=svg, caption=captions.quality(summary, best))


def _over_steps(steps: Sequence[int], aucs: Sequence[float], best: float | None, title: str) -> str:
    with drawings.figure() as (made, (axes,)):
        axes.plot(steps, aucs, color=drawings.BLUE, marker="o", markersize=4, label="AUC")
        if best is not None:
            axes.axhline(
                best, color=drawings.VERMILION, linestyle=(0, (3, 1.5)), label=f"best possible {best:.4f}"
            )
        axes.set_xlabel("Global step")
        axes.set_ylabel("AUC")
        axes.xaxis.set_major_formatter(lambda value, _: texts.whole(value))
        drawings.legend(axes)
        return drawings.svg(made, name="quality", title=title)


def _once(auc: float, best: float | None, title: str) -> str:
    """Draw one evaluation as a bar from 0.5, which is what guessing reaches."""
    top = max(auc, best or 0.0)
    with drawings.figure(height=1.55) as (made, (axes,)):
        axes.barh(0, auc - 0.5, left=0.5, height=0.5, color=drawings.SKY, label=f"AUC {auc:.4f}")
        if best is not None:
            axes.axvline(
                best, color=drawings.VERMILION, linewidth=1.6, linestyle=(0, (3, 1.5)),
                label=f"best possible {best:.4f}",
            )  # fmt: skip
        axes.set_xlim(min(0.5, auc - 0.02), min(1.0, top + 0.03) if top < 1 else 1.0)
        axes.set_ylim(-0.5, 0.5)
        axes.set_yticks([])
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("AUC (0.5 is guessing, 1 is perfect)")
        drawings.legend(axes)
        return drawings.svg(made, name="quality", title=title)


def waits(summary: Summary) -> Plot | None:
    """Return what part of its time each trainer waited for input."""
    trainers = [r for r in summary.replicas if r.input_wait_share is not None]
    if not trainers:
        return None
    title = "What a step's time goes into"
    shown = trainers
    if len(trainers) > MAX_BARS:
        shown = sorted(trainers, key=lambda r: -(r.input_wait_share or 0))[:MAX_BARS]
    with drawings.figure(height=max(1.7, _FRAME_INCHES + len(shown) * _BAR_INCHES * 1.3)) as (made, (axes,)):
        _split(axes, shown)
        svg = drawings.svg(made, name="waits", title=title)
    caption = captions.waits(summary)
    if len(shown) < len(trainers):
        caption += f" Shown are the {len(shown)} of {len(trainers)} trainers that waited most."
    return Plot(name="waits", title=title, svg=svg, caption=caption)


def _split(axes: Axes, shown: Sequence[ReplicaSummary]) -> None:
    rows = range(len(shown))
    waited = [min(1.0, max(0.0, r.input_wait_share or 0.0)) * 100 for r in shown]
    axes.barh(
        rows, waited, height=0.62, color=drawings.ORANGE, hatch="//", linewidth=0, label="waiting for input"
    )
    axes.barh(
        rows, [100 - part for part in waited], left=waited, height=0.62, color=drawings.BLUE, linewidth=0,
        label="pull, compute, push",
    )  # fmt: skip
    axes.set_yticks(rows, [str(r.replica) for r in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(0, 100)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("Part of the training time (%)")
    drawings.legend(axes)
