"""A page about several values of a field: for each, the predicted speed, the cost and the binding limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from paceline.modelling import forecasts
from paceline.modelling.forecasts import CONFIDENCE, Forecast
from paceline.modelling.predictions import NOTHING_BINDS
from paceline.surfaces import templates
from paceline.surfaces.charts import curves, drawings, scales
from paceline.surfaces.charts.curves import CurveValue
from paceline.surfaces.charts.drawings import Dots, Polyline, Shape
from paceline.surfaces.reports import texts
from paceline.surfaces.reports.figures import ReportFigure


def page(
    job: str, field: str, values: Sequence[str], found: Sequence[Forecast], *, say: Callable[[str], str] = str
) -> str:
    """Return the page as self-contained HTML.

    Args:
        job: the name of the job.
        field: the swept field of the job file.
        values: the values of the field, as the user wrote them.
        found: the forecast for each value.
        say: adds the options that locate the job to the commands in a text.
    """
    plots = [_throughput(field, values, found)]
    cost = _cost(field, values, found)
    return templates.rendered(
        "sweep_page.html",
        name=job,
        field=field,
        plots=plots if cost is None else [*plots, cost],
        rows=list(_rows(values, found)),
        knee=values[forecasts.knee(found)],
        worth=f"{forecasts.WORTH:g}",
        confidence=f"{CONFIDENCE:.0%}",
        command=say(f"paceline predict {job} --sweep {field}={','.join(values)} -o html"),
    )


def _throughput(field: str, values: Sequence[str], found: Sequence[Forecast]) -> ReportFigure:
    """Return the figure of the speed with its interval, the knee and the binding limits."""
    places = [
        CurveValue(
            label=value,
            middle=each.then_examples_per_second,
            low=each.examples_per_second * each.low,
            high=each.examples_per_second * each.high,
            kind=f"{_binding(each)} binds",
        )
        for value, each in zip(values, found, strict=True)
    ]
    chart = curves.curve(
        "Throughput",
        places,
        across=field,
        up="Examples per second",
        level=found[0].examples_per_second,
        marks={"knee": forecasts.knee(found)},
        shown=texts.whole,
    )
    caption = f"Beyond the knee nothing is {forecasts.WORTH:g} times as fast. Dots show what binds."
    return ReportFigure(name="throughput", title="Throughput", charts=(chart,), caption=caption, wide=True)


def _binding(forecast: Forecast) -> str:
    return forecast.then.binds or NOTHING_BINDS


def _cost(field: str, values: Sequence[str], found: Sequence[Forecast]) -> ReportFigure | None:
    """Return the figure of core-hours for a million examples; None if cores are not limited."""
    costs = [each.then_core_hours for each in found if each.then_core_hours is not None]
    if len(costs) < len(found):
        return None
    points = [(place + 0.5, cost) for place, cost in enumerate(costs)]
    knee = forecasts.knee(found) + 0.5
    up = scales.up_to(max(costs), "Core-hours for a million examples")
    shapes: list[Shape] = [
        Polyline(points=[(knee, 0.0), (knee, up.high)], style="tint-muted thin dash-short", key="knee"),
        Polyline(points=points, style="tint-vermilion"),
        Dots(points=points, said=[f"{cost:.3f}" for cost in costs], style="tint-vermilion"),
    ]
    across = scales.places(values, field)
    chart = drawings.chart("Cost", across, up, shapes, width=drawings.MIDDLE, height=220.0)
    caption = "Of the cores that the job asks for, used or not. The line is at the knee of the throughput."
    return ReportFigure(name="cost", title="Cost", charts=(chart,), caption=caption, wide=True)


def _rows(values: Sequence[str], found: Sequence[Forecast]) -> Iterator[dict[str, str]]:
    for value, each in zip(values, found, strict=True):
        cost = each.then_core_hours
        yield {
            "value": value,
            "speed": texts.whole(each.then_examples_per_second),
            "times": f"{each.times:.2f}",
            "interval": f"{each.low:.2f} to {each.high:.2f}",
            "cost": "not limited" if cost is None else f"{cost:.3f}",
            "binds": _binding(each),
        }
