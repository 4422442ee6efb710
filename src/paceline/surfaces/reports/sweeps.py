"""A page about several values of a field: what each would bring, what it costs, and what binds then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from matplotlib.axes import Axes

from paceline.modelling import forecasts
from paceline.modelling.forecasts import CONFIDENCE, Forecast
from paceline.modelling.predictions import NOTHING_BINDS
from paceline.surfaces.reports import drawings, templates, texts
from paceline.surfaces.reports.drawings import Plot

_HEIGHT_INCHES = 3.4
_COLOURS = (
    drawings.BLUE, drawings.VERMILION, drawings.GREEN, drawings.ORANGE, drawings.PURPLE, drawings.SKY,
)  # fmt: skip


def page(
    job: str, field: str, values: Sequence[str], found: Sequence[Forecast], *, say: Callable[[str], str] = str
) -> str:
    """Return the page: HTML that needs nothing else.

    Args:
        job: its name.
        field: that is swept.
        values: of it, as they were written.
        found: what each would bring.
        say: puts the options that say where the job is into commands.
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


def _throughput(field: str, values: Sequence[str], found: Sequence[Forecast]) -> Plot:
    """Return the speed with its interval, the knee, and below it what binds."""
    title = "Throughput"
    at = range(len(values))
    with drawings.figure(height=_HEIGHT_INCHES, width=2 * drawings.WIDTH_INCHES) as (made, (axes,)):
        now = found[0].examples_per_second
        middle = [each.then_examples_per_second for each in found]
        axes.fill_between(
            at, [now * each.low for each in found], [now * each.high for each in found],
            color=drawings.SKY, alpha=0.35, linewidth=0, label=f"{CONFIDENCE:.0%} of what is likely",
        )  # fmt: skip
        axes.plot(at, middle, "-", color=drawings.INK, linewidth=1.6, label="computed")
        for colour, (name, own) in zip(_COLOURS * len(found), _binding(found).items(), strict=False):
            axes.plot(
                own, [middle[place] for place in own], "o", color=colour, markersize=6, label=f"{name} binds"
            )
        axes.axhline(now, color=drawings.MUTED, linewidth=1.0, linestyle=(0, (3, 1.5)), label="now, measured")
        axes.axvline(forecasts.knee(found), color=drawings.MUTED, linewidth=1.0, label="knee")
        _finish(axes, field, values, "Examples per second")
        axes.yaxis.set_major_formatter(lambda value, _: texts.whole(value))
        drawings.legend(axes, characters=2 * drawings.LEGEND_CHARACTERS)
        svg = drawings.svg(made, name="throughput", title=title)
    caption = f"Beyond the knee nothing is {forecasts.WORTH:g} times as fast. Dots show what binds."
    return Plot(name="throughput", title=title, svg=svg, caption=caption, wide=True)


def _binding(found: Sequence[Forecast]) -> dict[str, list[int]]:
    """Return by what binds the places at which it does."""
    places: dict[str, list[int]] = {}
    for place, each in enumerate(found):
        places.setdefault(each.then.binds or NOTHING_BINDS, []).append(place)
    return places


def _cost(field: str, values: Sequence[str], found: Sequence[Forecast]) -> Plot | None:
    """Return the core-hours that a million examples take; None: cores are not limited."""
    costs = [each.then_core_hours for each in found]
    known = [(place, cost) for place, cost in enumerate(costs) if cost is not None]
    if len(known) < len(costs):
        return None
    title = "Cost"
    with drawings.figure(height=_HEIGHT_INCHES, width=2 * drawings.WIDTH_INCHES) as (made, (axes,)):
        axes.plot([x for x, _ in known], [y for _, y in known], "o-", color=drawings.VERMILION)
        axes.axvline(forecasts.knee(found), color=drawings.MUTED, linewidth=1.0)
        _finish(axes, field, values, "Core-hours for a million examples")
        svg = drawings.svg(made, name="cost", title=title)
    caption = "Of the cores that the job asks for, used or not. The line is at the knee of the throughput."
    return Plot(name="cost", title=title, svg=svg, caption=caption, wide=True)


def _finish(axes: Axes, field: str, values: Sequence[str], what: str) -> None:
    axes.set_xticks(range(len(values)), values)
    axes.set_xlabel(field)
    axes.set_ylabel(what)
    axes.set_ylim(bottom=0)


def _rows(values: Sequence[str], found: Sequence[Forecast]) -> Iterator[dict[str, str]]:
    binding = {place: name for name, places in _binding(found).items() for place in places}
    for place, (value, each) in enumerate(zip(values, found, strict=True)):
        cost = each.then_core_hours
        yield {
            "value": value,
            "speed": texts.whole(each.then_examples_per_second),
            "times": f"{each.times:.2f}",
            "interval": f"{each.low:.2f} to {each.high:.2f}",
            "cost": "not limited" if cost is None else f"{cost:.3f}",
            "binds": binding[place],
        }
