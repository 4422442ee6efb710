"""The explanation of a job with its plots: a section of a report, or a page of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from paceline.model.explanations.causes import Explanation
from paceline.model.measures.recordings import Recording
from paceline.surfaces import answers, templates
from paceline.surfaces.answers import Answer
from paceline.surfaces.charts import steps
from paceline.surfaces.diffs import Diffs
from paceline.surfaces.reports import captions, heat_maps, texts
from paceline.surfaces.reports.figures import ReportFigure


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """An explanation in words, and its plots."""

    answer: Answer
    plots: tuple[ReportFigure, ...]


def why(recording: Recording, found: Explanation, *, say: Callable[[str], str] = str) -> Why:
    """Return the contents of the section.

    Args:
        recording: the recording that the explanation is based on.
        found: the explanation.
        say: adds the options that locate the job to the commands in a text.
    """
    made = (heat_maps.load(recording), _traffic(recording), _split(recording))
    drawn = [plot for plot in made if plot is not None]
    if sum(not plot.wide for plot in drawn) % 2:
        # A narrow plot alone would leave half a row empty.
        drawn = [plot for plot in drawn if plot.wide] + [plot for plot in drawn if not plot.wide]
    return Why(answer=answers.answer(found, diffs=Diffs.of(recording.run), say=say), plots=tuple(drawn))


def _traffic(recording: Recording) -> ReportFigure | None:
    found = steps.traffic(recording)
    if found is None:
        return None
    caption = captions.traffic(found)
    return ReportFigure(name="traffic", title="Traffic of the variables", traffic=found, caption=caption)


def _split(recording: Recording) -> ReportFigure | None:
    found = steps.splits(recording)
    if found is None:
        return None
    caption = captions.split(found)
    return ReportFigure(name="split", title="Split of a traced step", splits=found, caption=caption)


def page(recording: Recording, found: Explanation, *, say: Callable[[str], str] = str) -> str:
    """Return a page with only this section, as self-contained HTML (see `why`)."""
    name = recording.run.name
    return templates.rendered(
        "why_page.html",
        name=name,
        made=texts.moment(recording.at),
        command=say(f"paceline why {name} -o html"),
        why=why(recording, found, say=say),
    )
