"""The output of ``paceline predict``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.modelling import forecasts
from paceline.modelling.elasticities import Compared
from paceline.modelling.forecasts import CONFIDENCE, Forecast
from paceline.modelling.predictions import NOTHING_BINDS, Speed
from paceline.services.studying.autoscale_forecasts import Round
from paceline.surfaces.views import cells, tables
from paceline.surfaces.views.tables import Column

#: The costs of the model, in words.
COSTS = {
    "trainer_seconds": "what a step costs a trainer",
    "trainer_visit_seconds": "what a visit to a PS costs a trainer",
    "server_visit_seconds": "what a visit costs a PS",
    "server_byte_seconds": "what a byte costs a PS",
    "own_seconds": "how long the way to a PS and back takes",
    "server_row_seconds": "what a row of a table costs a PS",
    "server_whole_byte_seconds": "what it costs a PS to update a table whole",
    "trainer_background_cores": "what a trainer uses besides",
    "server_background_cores": "what a PS uses besides",
    "storage_steps_per_second": "that the storage gives no more to more trainers",
}


def page(forecast: Forecast, *, width: int | None) -> RenderableType:
    """Return the measured and the predicted speed, with binding limits, costs and assumptions."""
    columns = (
        Column(header="", cells=("examples/s", "of now", "binds", "core-hours, 1M examples")),
        Column(
            header="now, measured",
            cells=(
                f"{forecast.examples_per_second:,.0f}",
                "",
                _binds(forecast.now),
                _cost(forecast.core_hours),
            ),
        ),
        Column(
            header="then, computed",
            cells=(
                f"{forecast.then_examples_per_second:,.0f}",
                f"{forecast.times:.2f} times ({forecast.low:.2f} to {forecast.high:.2f})",
                _binds(forecast.then),
                _cost(forecast.then_core_hours),
            ),
        ),
    )
    table = tables.fit(columns, width).text
    notes = [f"The interval has {CONFIDENCE:.0%} of what is likely."]
    if forecast.untold:
        words = ", ".join(COSTS[name] for name in forecast.untold)
        notes.append(f"Assumed, as this run does not tell it: {words}.")
    lines = [line for note in notes for line in cells.lines(note, width)]
    return Group(table, Text(), *map(Text, lines))


def probed(found: Sequence[Compared], *, width: int | None) -> RenderableType:
    """Return the elasticity of each probed part, beside the elasticity that the model computes."""
    columns = (
        Column(header="part", cells=[each.probed.part.name for each in found], shrink_to=16),
        Column(
            header="elasticity, probed",
            cells=[cells.interval(each.probed.value, each.probed.low, each.probed.high) for each in found],
        ),
        Column(header="computed", cells=[f"{each.computed:.2f}" for each in found], right=True),
    )
    note = "What was probed is in the forecast; what is computed here is what it would say without that."
    lines = cells.lines(note, width)
    return Group(Text(), tables.fit(columns, width).text, Text(), *map(Text, lines))


def rounds(now: float, found: Sequence[Round], *, width: int | None) -> RenderableType:
    """Return the predicted changes of each round of autoscaling, and the speed of the job after it.

    Args:
        now: the measured examples per second.
        found: the rounds.
        width: the width in characters.
    """
    rows = [row for number, each in enumerate(found, 1) for row in _moves(number, each)]
    columns = (
        Column(header="round", cells=["now", *(row[0] for row in rows)], right=True),
        Column(header="what changes", cells=["", *(row[1] for row in rows)], shrink_to=24),
        Column(header="examples/s", cells=[f"{now:,.0f}", *(row[2] for row in rows)], right=True),
        Column(header="of now", cells=["", *(row[3] for row in rows)]),
    )
    notes = [
        found[-1].balance.why[:1].upper() + found[-1].balance.why[1:] + ".",
        f"The intervals have {CONFIDENCE:.0%} of what is likely. The model stands for the job: what else "
        "happens in it while it runs, and beside it, is not in here.",
    ]
    lines = [line for note in notes for line in cells.lines(note, width)]
    return Group(tables.fit(columns, width).text, Text(), *map(Text, lines))


def _moves(number: int, found: Round) -> Iterator[tuple[str, str, str, str]]:
    """Yield a line for each move of a round; the first also has the effect of the whole round."""
    told = found.forecast
    brings = f"{told.then_examples_per_second:,.0f}", cells.interval(told.times, told.low, told.high)
    for place, move in enumerate(found.balance.moves):
        yield (str(number), move.text, *brings) if place == 0 else ("", move.text, "", "")


def sweep(values: Sequence[str], sweep_forecasts: Sequence[Forecast], *, width: int | None) -> RenderableType:
    """Return a row for each value of a field, with a mark at the knee."""
    knee = forecasts.knee(sweep_forecasts)
    columns = (
        Column(header="value", cells=values, right=True),
        Column(
            header="examples/s",
            cells=[f"{forecast.then_examples_per_second:,.0f}" for forecast in sweep_forecasts],
            right=True,
        ),
        Column(
            header="of now",
            cells=[
                cells.interval(forecast.times, forecast.low, forecast.high) for forecast in sweep_forecasts
            ],
        ),
        Column(
            header="core-h, 1M",
            cells=[_cost(forecast.then_core_hours) for forecast in sweep_forecasts],
            right=True,
            drop=1,
        ),
        Column(header="binds", cells=[_binds(forecast.then) for forecast in sweep_forecasts], shrink_to=12),
        Column(
            header="", cells=["<- knee" if place == knee else "" for place in range(len(sweep_forecasts))]
        ),
    )
    note = Text(f"Beyond the knee nothing is {forecasts.WORTH:g} times as fast.")
    return Group(tables.fit(columns, width).text, Text(), note)


def _binds(speed: Speed) -> str:
    name = speed.binds
    return NOTHING_BINDS if name is None else f"{name} ({speed.uses[name]:.0%})"


def _cost(core_hours: float | None) -> str:
    return "not limited" if core_hours is None else f"{core_hours:.3f}"
