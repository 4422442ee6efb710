"""The pages of models: which there are, and how each did from run to run."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from paceline.services import model_trends
from paceline.surfaces.views import cells
from paceline.surfaces.web.callers import Asked, may
from paceline.surfaces.web.operations import Operation
from paceline.surfaces.web.pages import rendering
from paceline.surfaces.web.pages.jobs import spark
from paceline.surfaces.web.routes import models as routes
from paceline.surfaces.web.routes.models import MOST_MODELS, Name
from paceline.tuning.memories import Measure, Regression

router = APIRouter(include_in_schema=False, prefix="/models")
Listing = Annotated[Asked, Depends(may(Operation.LIST))]
#: Runs of which a list shows how they did.
_SPARKED = 20
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 1040.0, 190.0, 74.0, 16.0, 14.0, 26.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A run in a plot."""

    x: float
    y: float
    name: str
    value: str
    is_worse: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A number of each run, from the oldest to the newest.

    Attributes:
        title: the name of what it is.
        ticks: heights and what is said there.
        lines: points of runs that follow each other and were measured, as SVG has them.
    """

    title: str
    width: float
    height: float
    left: float
    right: float
    ticks: tuple[tuple[float, str], ...]
    lines: tuple[str, ...]
    dots: tuple[Dot, ...]


@router.get("")
def list_models(request: Request, asked: Listing) -> HTMLResponse:
    """Show the models that jobs train, and what is kept of finished jobs."""
    store, engine = asked.site.store, asked.site.engine
    found = model_trends.models(store, engine=engine, namespace=asked.namespace, limit=MOST_MODELS)
    rows = []
    for each in found:
        speeds = [told.examples_per_core_hour for told in each.told[:_SPARKED]]
        rows.append({**routes.listed(each), "spark": spark(tuple(reversed(speeds)))})
    return rendering.page(request, "models.html", rows=rows, kept=routes.kept(asked))


@router.get("/{name}")
def show(request: Request, asked: Listing, name: Name) -> HTMLResponse:
    """Show how a model did from run to run."""
    found = routes.trend(asked, name)
    worse: dict[str, list[Regression]] = collections.defaultdict(list)
    for each in found.regressions:
        worse[each.run.name].append(each)
    runs = [routes.trained(each) for each in found.runs]
    plots = (
        _plot("WORK", runs, "examples_per_core_hour", cells.number, worse, Measure.WORK),
        _plot("SPEED", runs, "examples_per_second", cells.number, worse, None),
        _plot("QUALITY", runs, "auc", cells.loss, worse, Measure.QUALITY),
    )
    return rendering.page(
        request,
        "model.html",
        model=name,
        runs=list(reversed(runs)),
        worse=worse,
        regressions=found.regressions,
        plots=[each for each in plots if each is not None],
    )


def _plot(
    title: str,
    runs: Sequence[Mapping[str, Any]],
    field: str,
    say: Callable[[float], str],
    worse: Mapping[str, Sequence[Regression]],
    measure: Measure | None,
) -> Plot | None:
    """Return a plot; None: of less than two runs it is known."""
    known: list[float] = [run[field] for run in runs if run[field] is not None]
    if len(known) < 2:
        return None
    low, high = min(known), max(known)
    room = (high - low) * 0.1 or abs(high) * 0.1 or 1.0
    # A rate is seen from 0 on, unless that would hide what changes.
    low, high = (0.0, high + room) if low > 0 and high > 2 * low else (low - room, high + room)

    def height(value: float) -> float:
        return _HEIGHT - _BOTTOM - (value - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    step = (_WIDTH - _LEFT - _RIGHT) / max(1, len(runs) - 1)
    dots: list[Dot] = []
    lines: list[list[str]] = [[]]
    for place, run in enumerate(runs):
        if run[field] is None:
            lines.append([])
            continue
        x, y = _LEFT + place * step, height(run[field])
        lines[-1].append(f"{x:.1f},{y:.1f}")
        is_worse = any(each.measure is measure for each in worse.get(run["name"], ()))
        dots.append(
            Dot(x=round(x, 1), y=round(y, 1), name=run["name"], value=say(run[field]), is_worse=is_worse)
        )
    return Plot(
        title=title,
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        right=_WIDTH - _RIGHT,
        ticks=tuple(
            (round(height(value), 1), say(value))
            for value in (low + (high - low) * each / 3 for each in range(4))
        ),
        lines=tuple(" ".join(each) for each in lines if len(each) > 1),
        dots=tuple(dots),
    )
