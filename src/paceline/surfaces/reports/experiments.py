"""A page about an experiment: every variant beside the baseline, and every run."""

from __future__ import annotations

from collections.abc import Callable

from paceline.model.experiments import Experiment, Repeat, Variant
from paceline.specs import edits
from paceline.surfaces.reports import drawings, templates, texts
from paceline.surfaces.reports.drawings import Plot
from paceline.surfaces.views import experiments as views
from paceline.tuning import comparisons
from paceline.tuning.comparisons import Comparison

_ROW_INCHES, _FRAME_INCHES = 0.34, 0.95


def page(experiment: Experiment, *, say: Callable[[str], str] = str) -> str:
    """Return the page: HTML that needs nothing else.

    Args:
        experiment: as far as it is.
        say: puts the options that say where it is into commands.
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


def _speeds(experiment: Experiment) -> Plot | None:
    """Return every run as a dot, a row for each variant, and a line at the mean of the baseline."""
    speeds = {
        each.name: [one.outcome.speed for one in experiment.done if one.variant == each.name]
        for each in experiment.variants
    }
    if not any(speed for own in speeds.values() for speed in own):
        return None
    title = "Examples per second of each run"
    height = max(1.7, _FRAME_INCHES + len(speeds) * _ROW_INCHES)
    with drawings.figure(height=height, width=2 * drawings.WIDTH_INCHES) as (made, (axes,)):
        for row, own in enumerate(speeds.values()):
            axes.plot(own, [row] * len(own), "o", color=drawings.BLUE, markersize=5, alpha=0.8)
        base = speeds[experiment.baseline]
        if base:
            mean = sum(base) / len(base)
            axes.axvline(mean, color=drawings.INK, linewidth=1.2, linestyle=(0, (3, 1.5)))
        axes.set_yticks(range(len(speeds)), [texts.shortened(name, 48) for name in speeds])
        axes.set_ylim(len(speeds) - 0.4, -0.6)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(lambda value, _: texts.whole(value))
        axes.set_xlabel("Examples per second, all trainers together")
        svg = drawings.svg(made, name="runs", title=title)
    caption = f"Each dot is a run; the dashed line is the mean of {experiment.baseline}."
    return Plot(name="runs", title=title, svg=svg, caption=caption, wide=True)
