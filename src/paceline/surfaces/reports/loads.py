"""Figures about the whole run: load of the PS, quality of the model, waiting for input."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.model import quantities
from paceline.model.measures.samples import EvaluationReport
from paceline.model.measures.snapshots import Imbalance, RoleSnapshot, Snapshot
from paceline.surfaces.charts import bars, drawings, scales
from paceline.surfaces.charts.bars import Bars
from paceline.surfaces.charts.drawings import Boxes, Chart, Dots, LegendKey, Polyline, Shape
from paceline.surfaces.reports import captions, texts
from paceline.surfaces.reports.figures import ReportFigure

#: At most this many bars are drawn, the highest ones.
MAX_BARS = 12
#: The AUC of guessing.
_GUESSED_AUC = 0.5
#: If there are more evaluations, their line has no dots.
_MOST_DOTS = 60
_BEST = "tint-vermilion dash-long"
_MEAN = (LegendKey(shape="line", style="tint-ink thin dash-long", text="mean of all PS"),)
_WAITING, _WORKING = "waiting for input", "pull, compute, push"


def imbalance(servers: RoleSnapshot) -> ReportFigure | None:
    """Return the figure of each PS's load, with the mean of all."""
    if not servers.imbalances:
        return None
    caption = captions.imbalance(servers)
    if (count := len(servers.loads(servers.imbalances[0].resource))) > MAX_BARS:
        caption += f" Shown are the {MAX_BARS} of {count} PS with the highest load."
    return ReportFigure(
        name="imbalance",
        title="Load of the parameter servers",
        bars=tuple(
            _loads(servers, one, () if place else _MEAN) for place, one in enumerate(servers.imbalances)
        ),
        caption=caption,
    )


def _loads(servers: RoleSnapshot, one: Imbalance, keys: tuple[LegendKey, ...]) -> Bars:
    loads = servers.loads(one.resource)
    shown = list(loads.items())
    if len(shown) > MAX_BARS:
        shown = sorted(shown, key=lambda pair: -pair[1])[:MAX_BARS]
    is_cpu = one.resource == "CPU"
    longest = max(load for _, load in shown)
    mean = sum(loads.values()) / len(loads)
    rows = []
    for replica, load in shown:
        is_hot = replica == one.hot
        style = "tint-vermilion" if is_hot else "tint-sky"
        name = f"{replica} (hot)" if is_hot else str(replica)
        rows.append(bars.row(name, [(style, "CPU" if is_cpu else "network", load)], longest))
    return Bars(
        name="CPU" if is_cpu else "Network",
        of="CPU" if is_cpu else "Network",
        total="Cores" if is_cpu else "A second",
        rows=tuple(rows),
        shown=texts.cores if is_cpu else quantities.format_bytes,
        keys=keys,
        mark=mean / longest * bars.WIDTH if longest else None,
    )


def quality(evaluations: Sequence[EvaluationReport], best: float | None) -> ReportFigure | None:
    """Return the figure of each evaluation's AUC, with the best possible AUC."""
    told = [(e.step, e.auc) for e in evaluations if e.auc is not None]
    if not told:
        return None
    steps = [step for step, _ in told if step is not None]
    if len(told) > 1 and len(steps) == len(told) and len(set(steps)) > 1:
        chart = _over_steps(steps, [auc for _, auc in told], best)
    else:
        chart = _once(told[-1][1], best)
    caption = captions.quality(told[-1][1], best)
    return ReportFigure(name="quality", title="Quality", charts=(chart,), caption=caption)


def _over_steps(steps: Sequence[int], aucs: Sequence[float], best: float | None) -> Chart:
    across = scales.between(0.0, float(max(steps)), "Global step", shown=scales.whole)
    points = list(zip(steps, aucs, strict=True))
    shapes: list[Shape] = [Polyline(points=points, style="tint-blue", key="AUC")]
    if len(points) <= _MOST_DOTS:
        shapes.append(Dots(points=points, style="tint-blue", radius=3.0))
    if best is not None:
        shapes.append(Polyline(points=[(0.0, best), (across.high, best)], style=_BEST, key=_best(best)))
    lowest, highest = min(aucs), max([*aucs, *([] if best is None else [best])])
    room = (highest - lowest) * 0.06
    return drawings.chart("AUC", across, scales.between(lowest - room, highest + room, "AUC"), shapes)


def _best(auc: float) -> str:
    return f"best possible {auc:.4f}"


def _once(auc: float, best: float | None) -> Chart:
    """Return one evaluation as a bar that starts at the AUC of guessing."""
    low = min(_GUESSED_AUC, auc - 0.02)
    high = min(1.0, max(auc, best or 0.0) + 0.03)
    shapes: list[Shape] = [
        Boxes(boxes=[(_GUESSED_AUC, auc, 0.2, 0.8)], style="tint-sky", key=f"AUC {auc:.4f}")
    ]
    if best is not None:
        shapes.append(Polyline(points=[(best, 0.0), (best, 1.0)], style=_BEST, key=_best(best)))
    across = scales.between(low, max(high, low + 0.01), "AUC (0.5 is guessing, 1 is perfect)")
    return drawings.chart("AUC", across, scales.rows([""]), shapes, height=110.0)


def waits(snapshot: Snapshot) -> ReportFigure | None:
    """Return the figure of the share of time that each trainer waited for input."""
    trainers = sorted(
        (r.replica, r.input_wait_share) for r in snapshot.replicas if r.input_wait_share is not None
    )
    if not trainers:
        return None
    shown = trainers
    if len(trainers) > MAX_BARS:
        shown = sorted(trainers, key=lambda pair: -pair[1])[:MAX_BARS]
    rows = []
    for replica, share in shown:
        waited = min(1.0, max(0.0, share))
        parts = [("tint-orange", _WAITING, waited), ("tint-blue", _WORKING, 1.0 - waited)]
        rows.append(bars.row(str(replica), parts, 1.0, total=waited))
    caption = captions.waits(snapshot)
    if len(shown) < len(trainers):
        caption += f" Shown are the {len(shown)} of {len(trainers)} trainers that waited most."
    trainer_bars = Bars(
        name="Parts of the training time",
        of="Trainer",
        total="Waiting",
        rows=tuple(rows),
        shown=texts.share,
        keys=(
            LegendKey(shape="box", style="tint-orange", text=_WAITING),
            LegendKey(shape="box", style="tint-blue", text=_WORKING),
        ),
    )
    return ReportFigure(
        name="waits", title="What a step's time goes into", bars=(trainer_bars,), caption=caption
    )
