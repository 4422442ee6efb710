"""The pages of models: the list of models, and the trend of each from run to run."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from paceline.services.studying import model_trends
from paceline.surfaces.charts import drawings, scales, strips
from paceline.surfaces.charts.drawings import Chart, Dots, Polyline
from paceline.surfaces.charts.scales import Scale
from paceline.surfaces.views import cells
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.pages import rendering
from paceline.surfaces.web.routes import models as routes
from paceline.surfaces.web.routes.models import MOST_MODELS, Name
from paceline.tuning.memories import Measure, Regression

router = APIRouter(include_in_schema=False, prefix="/models")
Listing = Annotated[CallerRequest, Depends(may(ApiOperation.LIST))]
#: How many runs the trend of a model in the list covers.
_SPARKED = 20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot of one number over the runs, from the oldest to the newest; ``title`` names the number."""

    title: str
    chart: Chart


@router.get("")
def list_models(request: Request, asked: Listing) -> HTMLResponse:
    """Show the models that jobs train, and what is kept of finished jobs."""
    store, engine = asked.site.store, asked.site.engine
    found = model_trends.models(store, engine=engine, scope=asked.jobs.scope(), limit=MOST_MODELS)
    rows = []
    for each in found:
        speeds = [told.examples_per_core_hour for told in each.told[:_SPARKED]]
        rows.append({**routes.listed(each), "spark": strips.spark(tuple(reversed(speeds)))})
    return rendering.page(request, "models.html", rows=rows, kept=routes.kept(asked))


@router.get("/{name}")
def show(request: Request, asked: Listing, name: Name) -> HTMLResponse:
    """Show how a model did from run to run."""
    trend = routes.trend(asked, name)
    worse: dict[str, list[Regression]] = collections.defaultdict(list)
    for regression in trend.regressions:
        worse[regression.run.name].append(regression)
    runs = [routes.trained(run) for run in trend.runs]
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
        regressions=trend.regressions,
        plots=[plot for plot in plots if plot is not None],
    )


def _plot(
    title: str,
    runs: Sequence[Mapping[str, Any]],
    field: str,
    say: Callable[[float], str],
    worse: Mapping[str, Sequence[Regression]],
    measure: Measure | None,
) -> Plot | None:
    """Return a plot; None: fewer than two runs have the number."""
    known: list[float] = [run[field] for run in runs if run[field] is not None]
    if len(known) < 2:
        return None
    low, high = min(known), max(known)
    room = (high - low) * 0.1 or abs(high) * 0.1 or 1.0
    # The axis begins at 0 if the values differ by more than a factor of 2; else 0 would hide the changes.
    low, high = (0.0, high + room) if low > 0 and high > 2 * low else (low - room, high + room)
    places = list(enumerate(runs))
    measured = [(place, run) for place, run in places if run[field] is not None]
    is_worse = {
        name for name, regressions in worse.items() if any(each.measure is measure for each in regressions)
    }
    groups = {
        style: [(place, run) for place, run in measured if (run["name"] in is_worse) == worse_ones]
        for style, worse_ones in (("tint-blue", False), ("tint-vermilion", True))
    }
    across = Scale(
        low=0.0,
        high=float(max(1, len(runs) - 1)),
        ticks=((0.0, runs[0]["submitted_at"][:10]), (len(runs) - 1.0, runs[-1]["submitted_at"][:10])),
        has_rules=False,
    )
    return Plot(
        title=title,
        chart=drawings.chart(
            title,
            across,
            scales.between(low, high),
            [
                Polyline(points=[(place, run[field]) for place, run in places], style="tint-ink"),
                *(
                    Dots(
                        points=[(place, run[field]) for place, run in group],
                        said=[f"{run['name']}: {say(run[field])}" for _, run in group],
                        style=style,
                        radius=6.0 if style == "tint-vermilion" else 3.5,
                    )
                    for style, group in groups.items()
                ),
            ],
            width=drawings.WIDE,
            height=190.0,
        ),
    )
