"""A page about a search for a better job file: what was wrong, what each change brought, and the proof."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator
from typing import Any

from paceline.model.causes import Explanation
from paceline.model.recordings import Recording
from paceline.model.tunings import Trial, Tuning
from paceline.surfaces import documents
from paceline.surfaces.reports import drawings, templates, texts, whys
from paceline.surfaces.reports.drawings import Plot
from paceline.surfaces.reports.tiles import Tile
from paceline.surfaces.views import tunings as views
from paceline.tuning import summaries
from paceline.tuning.summaries import Summary

#: From so many times between the slowest and the fastest on, a plot has a logarithmic axis.
_WIDE = 10.0
_BAR_INCHES, _FRAME_INCHES = 0.34, 0.95
_HEAD = 2


def page(tuning: Tuning, recording: Recording, found: Explanation, *, say: Callable[[str], str] = str) -> str:
    """Return the page: HTML that needs nothing else.

    Args:
        tuning: the search.
        recording: of the job as it came.
        found: why that was as it was.
        say: puts the options that say where the job is into commands.
    """
    told = summaries.summary(tuning)
    return templates.rendered(
        "tuning_page.html",
        name=tuning.job,
        made=texts.moment(recording.at),
        tiles=list(_tiles(told, found)),
        conclusion=[views.conclusion(tuning), *views.proof(tuning)],
        ended=tuning.ended,
        trials=[_row(each) for each in tuning.finished],
        plots=[_speeds(tuning)],
        diff=list(_diff(tuning)),
        risks=list(_risks(tuning)),
        why=whys.why(recording, found, say=say),
        facts=recording.facts,
        command=say(f"paceline report {tuning.name}"),
    )


def document(tuning: Tuning, found: Explanation) -> dict[str, Any]:
    """Return the numbers for programs."""
    body = documents.plain(summaries.summary(tuning))
    primary = found.causes[0].name if found.causes else None
    return documents.document("TuningSummary", {"name": tuning.name, "primary_cause": primary, **body})


def _tiles(told: Summary, found: Explanation) -> Iterator[Tile]:
    if told.factor is None or told.factor_low is None or told.factor_high is None:
        yield Tile(name="Gain", value="none", detail="nothing was better than the job as it came")
    else:
        often = "once" if told.pairs == 1 else f"{told.pairs} times"
        how = f"run in turn, {often}" if told.pairs else "from one run of each"
        yield Tile(
            name="Times as good",
            value=f"{told.factor:.1f}",
            detail=f"{told.factor_low:.1f} to {told.factor_high:.1f}, {how}",
        )
    yield Tile(
        name="Examples/s",
        value=texts.number(told.examples_per_second_after),
        detail=f"{texts.number(told.examples_per_second_before)} before",
    )
    examples = "" if told.auc_examples is None else f", after {texts.whole(told.auc_examples)} examples"
    yield Tile(
        name="AUC",
        value=texts.quality(told.auc_after),
        detail=f"{texts.quality(told.auc_before)} before{examples}",
    )
    yield Tile(name="Trials", value=str(told.trials), detail=f"{told.kept} with changes that stay")
    yield Tile(name="Primary cause", value=found.causes[0].name if found.causes else "none")


def _row(trial: Trial) -> dict[str, str]:
    speed = trial.outcome.speed if trial.outcome else 0.0
    found = trial.judgement
    return {
        "number": str(trial.number),
        "change": views.changed(trial),
        "computed": ", ".join(_computed(trial)),
        "speed": texts.whole(speed) if speed else texts.UNMEASURED,
        "times": "" if found is None or not found.times else f"{found.times:.2f}",
        "interval": "" if found is None or not found.times else f"{found.low:.2f} to {found.high:.2f}",
        "verdict": views.verdict(trial),
        "run": trial.run,
    }


def _computed(trial: Trial) -> Iterator[str]:
    for each in trial.proposals:
        if each.gain is not None:
            yield f"{each.gain.low:.1f} to {each.gain.high:.1f}"


def _speeds(tuning: Tuning) -> Plot:
    """Return the speed of each trial; what was undone is hatched."""
    title = "Examples per second of each trial"
    trials = tuning.finished
    speeds = [each.outcome.speed if each.outcome else 0.0 for each in trials]
    height = max(1.7, _FRAME_INCHES + len(trials) * _BAR_INCHES)
    with drawings.figure(height=height, width=2 * drawings.WIDTH_INCHES) as (made, (axes,)):
        for row, (trial, speed) in enumerate(zip(trials, speeds, strict=True)):
            stays = not trial.is_undone
            axes.barh(
                row, speed, height=0.62, color=drawings.GREEN if stays else drawings.MUTED,
                hatch=None if stays else "//", linewidth=0,
            )  # fmt: skip
        axes.set_yticks(range(len(trials)), [_label(each) for each in trials])
        axes.set_ylim(len(trials) - 0.4, -0.6)
        known = [each for each in speeds if each]
        what = "Examples per second, all trainers together"
        if known and max(known) > _WIDE * min(known):
            axes.set_xscale("log")
            axes.set_xlim(left=10 ** math.floor(math.log10(min(known))))
            what += " (logarithmic)"
        axes.xaxis.set_major_formatter(lambda value, _: texts.whole(value))
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(what)
        svg = drawings.svg(made, name="trials", title=title)
    caption = (
        "Each trial has the changes of those before it that stayed, and its own; hatched ones were undone."
    )
    return Plot(name="trials", title=title, svg=svg, caption=caption, wide=True)


def _label(trial: Trial) -> str:
    return f"{trial.number}: {texts.shortened(views.changed(trial), 48)}"


def _diff(tuning: Tuning) -> Iterator[str]:
    """Yield what differs between the first job file and the best one."""
    best = tuning.best
    if best is not None:
        rows = difflib.unified_diff(tuning.source.splitlines(), best.source.splitlines(), lineterm="", n=2)
        yield from list(rows)[_HEAD:]


def _risks(tuning: Tuning) -> Iterator[str]:
    for trial in tuning.finished:
        if trial.is_kept:
            yield from (f"{each.name}: {each.risk}" for each in trial.proposals if each.risk)
