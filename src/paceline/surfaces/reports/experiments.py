"""A page about an experiment: every variant compared with the baseline, and every run."""

from __future__ import annotations

from collections.abc import Callable

from paceline.model.studies.experiments import Experiment, Repeat, Variant
from paceline.specs.edits import edits
from paceline.surfaces import templates
from paceline.surfaces.charts import drawings, scales
from paceline.surfaces.charts.drawings import Dots, Polyline, Shape
from paceline.surfaces.reports import texts
from paceline.surfaces.reports.figures import ReportFigure
from paceline.surfaces.views import experiments as views
from paceline.tuning import comparisons
from paceline.tuning.comparisons import Comparison


def page(experiment: Experiment, *, say: Callable[[str], str] = str) -> str:
    """Return the page as self-contained HTML.

    Args:
        experiment: the experiment in its current state.
        say: adds the options that locate the experiment to the commands in a text.
    """
    found = comparisons.compared(experiment)
    return templates.rendered(
        "experiment_page.html",
        name=experiment.name,
        baseline=experiment.baseline,
        progress=views.progress(experiment),
        rows=[_row(each) for each in found],
        plots=[plot for plot in (_speeds(experiment),) if plot is not None],
        changes=[(each.name, _changes(experiment, each)) for each in experiment.variants],
        runs=[_run(each) for each in experiment.done],
        facts=experiment.facts,
        source=experiment.source,
        command=say(f"paceline experiment report {experiment.name}"),
    )


def _row(each: Comparison) -> dict[str, str]:
    speed = each.examples_per_second
    return {
        "variant": each.variant,
        "runs": str(each.runs),
        "speed": texts.UNMEASURED if speed is None else texts.whole(speed[0]),
        "range": "" if speed is None else f"{texts.whole(speed[1])} to {texts.whole(speed[2])}",
        "times": views.times(each),
        "effect": views.effect(each),
        "verdict": str(each.verdict),
        "causes": ", ".join(each.causes),
    }


def _changes(experiment: Experiment, variant: Variant) -> str:
    return "; ".join(edits.listed(experiment.source, variant.changes)) or "the job file as it is"


def _run(repeat: Repeat) -> dict[str, str]:
    outcome = repeat.outcome
    return {
        "run": repeat.run,
        "variant": repeat.variant,
        "round": str(repeat.number + 1),
        "speed": texts.whole(outcome.speed or None),
        "cores": texts.UNMEASURED if outcome.used_cores is None else texts.cores(outcome.used_cores),
        "cause": repeat.cause,
        "failure": outcome.failure,
    }


def _speeds(experiment: Experiment) -> ReportFigure | None:
    """Return a chart with a row for each variant, a dot for each run, and a line at the baseline's mean.

    A run that did not train has no speed, so it has no dot and no part in the mean.
    """
    speeds = {
        variant.name: [
            repeat.outcome.speed
            for repeat in experiment.done
            if repeat.variant == variant.name and repeat.outcome.speed
        ]
        for variant in experiment.variants
    }
    if not any(speed for variant_speeds in speeds.values() for speed in variant_speeds):
        return None
    title = "Examples per second of each run"
    across = scales.up_to(
        max(speed for variant_speeds in speeds.values() for speed in variant_speeds),
        "Examples per second, all trainers together",
        shown=scales.whole,
    )
    shapes: list[Shape] = [
        Dots(
            points=[(speed, row + 0.5) for speed in variant_speeds],
            style="tint-blue faint",
            said=[f"{name}: {texts.whole(speed)}" for speed in variant_speeds],
        )
        for row, (name, variant_speeds) in enumerate(speeds.items())
    ]
    base = speeds[experiment.baseline]
    if base:
        mean = sum(base) / len(base)
        key = f"mean of {experiment.baseline}"
        shapes.append(Polyline(points=[(mean, 0.0), (mean, float(len(speeds)))], style=_BASE, key=key))
    names = [texts.shortened(name, 40) for name in speeds]
    chart = drawings.chart(title, across, scales.rows(names), shapes, width=drawings.WIDE)
    caption = f"Each dot is a run that trained; the dashed line is the mean of {experiment.baseline}."
    return ReportFigure(name="runs", title=title, charts=(chart,), caption=caption, wide=True)


_BASE = "tint-ink thin dash-long"
