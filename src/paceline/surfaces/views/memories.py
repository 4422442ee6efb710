"""The output of ``paceline suggest``: the best past run of the model, and the differences of its job file."""

from __future__ import annotations

from rich.text import Text

from paceline.services.studying.past_runs import Suggestion
from paceline.surfaces.diffs import Diffs
from paceline.surfaces.views import cells
from paceline.surfaces.views.paragraphs import Paragraphs
from paceline.tuning.memories import PastRun

_INDENT = 11
_NAMED = 4


def page(job: str, suggestion: Suggestion, *, diffs: Diffs, width: int | None) -> Text:
    """Return the suggestion from past runs, and regressions among them."""
    paragraphs = Paragraphs(width)
    parts = [paragraphs.filled("", (f"{job}: {_lead(suggestion)}", "bold"), indent=0)]
    best = suggestion.best
    if best is not None:
        parts += [
            Text(),
            paragraphs.filled("best", (f"{best.name}: {_numbers(best)}", ""), indent=_INDENT),
            *paragraphs.diff("change", diffs.rows(suggestion.changes), indent=_INDENT),
        ]
        others = [each for each in suggestion.runs if each is not best]
        if others:
            said = "; ".join(f"{each.name} {each.examples_per_second:,.0f}" for each in others[:_NAMED])
            more = f"; and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
            parts.append(paragraphs.filled("rests on", (f"{said}{more}", "dim"), indent=_INDENT))
    for each in suggestion.regressions:
        text = (
            f"{each.run.name} has {each.times:.2f} times ({each.low:.2f} to {each.high:.2f}) the "
            f"{each.measure} of {', '.join(each.before[:_NAMED])}, whose settings are the same: "
            f"paceline why {each.run.name}"
        )
        parts += [Text(), paragraphs.filled("worse", (text, "yellow"), indent=_INDENT)]
    return Text("\n").join(parts)


def _lead(found: Suggestion) -> str:
    if not found.runs:
        return "no run of this model was measured"
    if found.best is None:
        return f"none of {len(found.runs)} runs of this model is within the limits"
    if not found.changes:
        return "it has the settings of the best run of this model already"
    return (
        f"{len(found.runs)} {'run' if len(found.runs) == 1 else 'runs'} of this model suggest other settings"
    )


def _numbers(run: PastRun) -> str:
    asked = run.spec.asked_cores
    parts = [
        f"{run.examples_per_second:,.0f} examples/s",
        "" if asked is None else f"asks for {asked:g} cores",
        "" if run.used_cores is None else f"used {run.used_cores:.2f}",
        "" if run.auc is None else f"AUC {run.auc:.4f}",
        cells.moment(run.submitted_at),
    ]
    return ", ".join(filter(None, parts))
