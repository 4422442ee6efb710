"""The proposals of ``paceline tune`` for a measured job, the most promising first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from paceline.model.studies.proposals import Proposal
from paceline.model.studies.tunings import Goal, Objective
from paceline.surfaces import answers
from paceline.surfaces.diffs import Diffs
from paceline.surfaces.views.paragraphs import Paragraphs

_INDENT = 11
#: The quantity that improves, by the goal of the search.
GAINED = {Goal.FASTEST: "the examples/s", Goal.CHEAPEST: "the examples for each core-second"}


def page(
    job: str,
    found: Sequence[Proposal],
    objective: Objective,
    *,
    none: str,
    diffs: Diffs,
    width: int | None,
) -> Text:
    """Return the proposals, each with its gain, the basis of the gain, its risk and its diff.

    Args:
        job: the name of the job.
        found: the proposals.
        objective: the objective of the search.
        none: why there are no proposals.
        diffs: shows the changes of proposals.
        width: the width of the terminal; None means unlimited.
    """
    paragraphs = Paragraphs(width)
    count = (
        f"{len(found)} {'change' if len(found) == 1 else 'changes'} may be worth a trial" if found else none
    )
    parts = [paragraphs.filled("", (f"{job}: {count}", "bold"), indent=0)]
    for number, each in enumerate(found, start=1):
        parts += [Text(), paragraphs.filled(f"{number}.", (each.name, "bold"), (each.what, ""), indent=3)]
        if each.gain is not None:
            gain = f"{answers.gain(each.gain)} {GAINED[objective.goal]}, computed"
            parts.append(paragraphs.filled("   gain", (gain, ""), (f"({each.basis})", "dim"), indent=_INDENT))
        if each.risk:
            parts.append(paragraphs.filled("   risk", (each.risk, ""), indent=_INDENT))
        parts += paragraphs.diff("   change", diffs.rows(each.changes), indent=_INDENT)
    return Text("\n").join(parts)
