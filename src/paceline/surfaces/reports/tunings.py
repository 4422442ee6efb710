"""A page about a search for a better job file: the cause, the effect of each change, and the proof."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Any

from paceline.model.explanations.causes import Explanation
from paceline.model.measures.recordings import Recording
from paceline.model.studies.tunings import Trial, Tuning
from paceline.surfaces import documents, templates
from paceline.surfaces.charts import bars
from paceline.surfaces.charts.bars import Bars
from paceline.surfaces.charts.drawings import LegendKey
from paceline.surfaces.reports import texts, whys
from paceline.surfaces.reports.figures import ReportFigure
from paceline.surfaces.reports.tiles import Tile
from paceline.surfaces.views import tunings as views
from paceline.tuning import summaries
from paceline.tuning.summaries import SearchSummary

_HEAD = 2


def page(tuning: Tuning, recording: Recording, found: Explanation, *, say: Callable[[str], str] = str) -> str:
    """Return the page as self-contained HTML.

    Args:
        tuning: the search.
        recording: the recording of the original job.
        found: the explanation of the original job.
        say: adds the options that locate the job to the commands in a text.
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
    """Return the numbers of the search as a document for programs."""
    body = documents.plain(summaries.summary(tuning))
    primary = found.causes[0].name if found.causes else None
    return documents.document("TuningSummary", {"name": tuning.name, "primary_cause": primary, **body})


def _tiles(summary: SearchSummary, explanation: Explanation) -> Iterator[Tile]:
    if summary.factor is None or summary.factor_low is None or summary.factor_high is None:
        yield Tile(name="Gain", value="none", detail="nothing was better than the job as it came")
    else:
        often = "once" if summary.pairs == 1 else f"{summary.pairs} times"
        how = f"run in turn, {often}" if summary.pairs else "from one run of each"
        yield Tile(
            name="Times as good",
            value=f"{summary.factor:.1f}",
            detail=f"{summary.factor_low:.1f} to {summary.factor_high:.1f}, {how}",
        )
    yield Tile(
        name="Examples/s",
        value=texts.number(summary.examples_per_second_after),
        detail=f"{texts.number(summary.examples_per_second_before)} before",
    )
    examples = "" if summary.auc_examples is None else f", after {texts.whole(summary.auc_examples)} examples"
    yield Tile(
        name="AUC",
        value=texts.quality(summary.auc_after),
        detail=f"{texts.quality(summary.auc_before)} before{examples}",
    )
    yield Tile(name="Trials", value=str(summary.trials), detail=f"{summary.kept} with changes that stay")
    yield Tile(name="Primary cause", value=explanation.causes[0].name if explanation.causes else "none")


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


def _speeds(tuning: Tuning) -> ReportFigure:
    """Return a chart of each trial's speed, and whether its changes were kept."""
    trials = tuning.finished
    speeds = [trial.outcome.speed if trial.outcome else 0.0 for trial in trials]
    longest = max(speeds, default=0.0)
    rows = [
        bars.row(_label(trial), [(_UNDONE if trial.is_undone else _STAYS, "examples/s", speed)], longest)
        for trial, speed in zip(trials, speeds, strict=True)
    ]
    speed_bars = Bars(
        name="Examples per second, all trainers together",
        of="Trial",
        total="Examples/s",
        rows=tuple(rows),
        shown=lambda speed: texts.whole(speed or None),
        keys=(
            LegendKey(shape="box", style=_STAYS, text="its changes stay"),
            LegendKey(shape="box", style=_UNDONE, text="undone"),
        ),
    )
    caption = "Each trial has the changes of those before it that stayed, and its own."
    title = "Examples per second of each trial"
    return ReportFigure(name="trials", title=title, bars=(speed_bars,), caption=caption, wide=True)


_STAYS, _UNDONE = "tint-green", "tint-muted"


def _label(trial: Trial) -> str:
    return f"{trial.number}: {views.changed(trial)}"


def _diff(tuning: Tuning) -> Iterator[str]:
    """Yield the rows of a diff between the first job file and the best one."""
    best = tuning.best
    if best is not None:
        rows = difflib.unified_diff(tuning.source.splitlines(), best.source.splitlines(), lineterm="", n=2)
        yield from list(rows)[_HEAD:]


def _risks(tuning: Tuning) -> Iterator[str]:
    for trial in tuning.finished:
        if trial.is_kept:
            yield from (f"{each.name}: {each.risk}" for each in trial.proposals if each.risk)
