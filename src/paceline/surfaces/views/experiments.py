"""The output of ``paceline experiment``: every variant compared with the baseline."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.model.studies.experiments import Experiment
from paceline.surfaces.views import cells, tables
from paceline.surfaces.views.tables import Column
from paceline.tuning import comparisons
from paceline.tuning.comparisons import Comparison


def page(experiment: Experiment, *, width: int | None) -> RenderableType:
    """Return a row for each variant, and the progress of the experiment."""
    found = comparisons.compared(experiment)
    columns = (
        Column(header="variant", cells=[each.variant for each in found], shrink_to=16),
        Column(header="runs", cells=[f"{each.runs}" for each in found], right=True, drop=2),
        Column(header="examples/s", cells=[_speed(each) for each in found], right=True),
        Column(header="times", cells=[times(each) for each in found]),
        Column(header="effect", cells=[effect(each) for each in found], right=True, drop=1),
        Column(header="verdict", cells=[str(each.verdict) for each in found]),
        Column(header="why no faster", cells=[", ".join(each.causes) for each in found], shrink_to=14),
    )
    lines = cells.lines(progress(experiment), width)
    return Group(tables.fit(columns, width).text, Text(), *map(Text, lines))


def progress(experiment: Experiment) -> str:
    """Return the progress of an experiment, and how its variants are compared."""
    return (
        f"{experiment.done_runs} of {experiment.planned_runs} runs are done. Times: as fast as "
        f"{experiment.baseline}, in runs of the same round, with an interval of 90 %."
    )


def times(each: Comparison) -> str:
    """Return the speed of a variant as a multiple of the baseline's, with its interval."""
    return "" if each.times is None else cells.interval(*each.times)


def effect(each: Comparison) -> str:
    """Return the effect of a variant in standard deviations."""
    return "" if each.effect is None else f"{each.effect:+.1f}"


def _speed(each: Comparison) -> str:
    return cells.UNMEASURED if each.examples_per_second is None else f"{each.examples_per_second[0]:,.0f}"
