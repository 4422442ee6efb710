"""The headline of a job: its primary cause in a line, and how its trainers spend the time of a step."""

from __future__ import annotations

from rich.text import Text

from paceline.diagnosing import catalogues
from paceline.model.explanations.causes import Cause, Explanation
from paceline.model.traces import trace_summaries
from paceline.services.observing.diagnosis_runs import DiagnosisRun
from paceline.surfaces.views import cells, styles

_NEED = "not enough data: "


def lines(look: DiagnosisRun, *, width: int | None) -> list[Text]:
    """Return a line for the primary cause and a line for the split of a step.

    Args:
        look: the diagnosis of the job.
        width: the width of the terminal; None means unlimited.
    """
    found = [finding(look.explanation), split(look)]
    for line in found:
        if width is not None:
            line.truncate(width, overflow="ellipsis")
    return found


def finding(found: Explanation) -> Text:
    """Return a line with the primary cause, or that nothing is wrong, or what is not known."""
    cause = primary(found)
    if cause is not None:
        text = Text(f"{catalogues.topic(cause.name).code} ", style=styles.of_severity(cause.severity))
        text.append(cells.clean(cause.what))
        return text
    # Missing data come before what could not be determined, because the user can supply them.
    lacking = sorted(found.unknown, key=lambda each: not each.startswith(_NEED))
    if lacking:
        what = cells.clean(lacking[0].removeprefix(_NEED))
        return Text(f"nothing is found, but not all is known: {what}", style="dim")
    return Text("nothing is wrong", style="green")


def primary(found: Explanation) -> Cause | None:
    """Return the most important current cause; None if there is none."""
    return next((cause for cause in found.causes if not cause.is_past), None)


def split(look: DiagnosisRun) -> Text:
    """Return the shares of a step's time, from the newest traces."""
    shares = trace_summaries.shares(look.recording.traces)
    if shares is None:
        return Text("step: not traced", style="dim")
    parts = {
        "pull": shares.pull,
        "compute": shares.compute,
        "push": shares.push,
        "input": shares.input_wait,
        "other": shares.other,
    }
    shown = "  ".join(f"{name} {cells.percent(share)}" for name, share in parts.items())
    ago = cells.duration(max(0.0, look.recording.at - shares.at))
    return Text(f"step: {shown}  (traced {ago} ago)")
