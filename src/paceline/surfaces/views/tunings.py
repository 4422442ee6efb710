"""The trials of ``paceline tune``: each with its change, its speed and whether the change is kept."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.model.studies.tunings import Trial, Tuning
from paceline.services.studying.live_changes import LiveChange
from paceline.surfaces.views import cells, tables
from paceline.surfaces.views.proposals import GAINED
from paceline.surfaces.views.tables import Column
from paceline.tuning import judgements

_FIRST = "the job as it came"


def page(tuning: Tuning, *, width: int | None) -> RenderableType:
    """Return the trials in their order, and the conclusion."""
    done = tuning.finished
    columns = (
        Column(header="trial", cells=[str(each.number) for each in done], right=True),
        Column(header="change", cells=[changed(each) for each in done], shrink_to=16),
        Column(header="examples/s", cells=[_speed(each) for each in done], right=True),
        Column(header="cores", cells=[_cores(each) for each in done], right=True, drop=1),
        Column(header="times as good", cells=[_times(each) for each in done]),
        Column(header="verdict", cells=[verdict(each) for each in done], shrink_to=16),
    )
    lines = [conclusion(tuning), *proof(tuning), f"It ended as {tuning.ended}." if tuning.ended else ""]
    wrapped = [line for each in filter(None, lines) for line in cells.lines(each, width)]
    return Group(tables.fit(columns, width).text, Text(), *map(Text, wrapped))


def changed(trial: Trial) -> str:
    """Return the names of a trial's changes."""
    return ", ".join(each.name for each in trial.proposals) or _FIRST


def verdict(trial: Trial) -> str:
    """Return whether the changes of a trial were kept, or why not."""
    if trial.judgement is None:
        return trial.outcome.failure if trial.outcome is not None else ""
    return "kept" if trial.judgement.kept else f"undone: {trial.judgement.why}"


def _speed(trial: Trial) -> str:
    return (
        cells.UNMEASURED
        if trial.outcome is None or not trial.outcome.speed
        else f"{trial.outcome.speed:,.0f}"
    )


def _cores(trial: Trial) -> str:
    return cells.cores(None if trial.outcome is None else trial.outcome.asked_cores)


def _times(trial: Trial) -> str:
    found = trial.judgement
    return "" if found is None or not found.times else cells.interval(found.times, found.low, found.high)


def live(done: LiveChange) -> Text:
    """Return the result of a change of a running job."""
    found = done.judgement
    times = (
        f"{found.times:.2f} times ({found.low:.2f} to {found.high:.2f})" if found.times else "not measured"
    )
    kept = "stays" if found.kept else f"was undone: {found.why}"
    return Text(
        f"{done.job}: {done.proposal.name} {kept}\n"
        f"  examples/s {done.after.speed:,.0f}, before {done.before.speed:,.0f}: {times}"
    )


def proof(tuning: Tuning) -> Iterator[str]:
    """Yield the results of the final comparison, in which the original job and the best one run in turn."""
    found, quality = judgements.proven(tuning.objective, tuning.pairs), tuning.quality
    if found is not None:
        times, low, high = found
        often = "once" if len(tuning.pairs) == 1 else f"{len(tuning.pairs)} times"
        yield f"Run in turn, {often}: {times:.2f} times ({low:.2f} to {high:.2f})."
    if quality is not None:
        before, after = (
            "not measured" if each is None else f"{each:.4f}"
            for each in (quality.auc_before, quality.auc_after)
        )
        yield f"AUC after {quality.examples:,} examples: {after}, of the job as it came {before}."


def conclusion(tuning: Tuning) -> str:
    """Return a sentence about how much better the best job file is than the first one."""
    first, best = tuning.first, tuning.best
    if first is None or best is None or first.outcome is None or best.outcome is None:
        return "Nothing was measured."
    if best.number == first.number:
        return "Nothing was better than the job as it came."
    found = judgements.judge(tuning.objective, first.outcome, best.outcome)
    return (
        f"Trial {best.number} has {found.times:.2f} times ({found.low:.2f} to {found.high:.2f}) "
        f"{GAINED[tuning.objective.goal]} of the job as it came, from one run of each."
    )
