"""Studies that take many runs: experiments, and searches for a better job file."""

from __future__ import annotations

from typing import Literal

from paceline.model.studies import experiments, studies, tunings
from paceline.surfaces.web.schemas.bases import Document, Instant, Schema
from paceline.surfaces.web.schemas.derived import document, schema
from paceline.tuning import comparisons, summaries


class Study(Schema):
    """How far a study is.

    Attributes:
        is_complete: whether nothing is left to be run.
    """

    name: str
    kind: Literal["Experiment", "Tuning"]
    changed_at: Instant
    done: int
    planned: int
    is_complete: bool


class StudyList(Document):
    """Studies, the last changed first."""

    kind: Literal["StudyList"] = "StudyList"
    items: list[Study]


#: Without the losses: there are many of them, and the run has them, too.
Outcome = schema(studies.TrialOutcome, "Outcome", omit={"losses"})
Repeat = schema(experiments.Repeat, outcome=Outcome)
Experiment = document(
    experiments.Experiment,
    "Experiment",
    done=list[Repeat],  # type: ignore[valid-type]
    compared=list[schema(comparisons.Comparison)],  # type: ignore[misc]
)
#: ``changes`` are the names of what was changed.
Trial = schema(
    tunings.Trial,
    omit={"source", "proposals", "since"},
    changes=list[str],
    outcome=Outcome | None,
)


Result = schema(summaries.SearchSummary, "Result")


class Tuning(Document):
    """A search for a better job file; ``ended`` says why it went no further, and is empty until then."""

    kind: Literal["Tuning"] = "Tuning"
    name: str
    job: str
    goal: str
    most_trials: int
    source: str
    best_source: str | None
    ended: str
    trials: list[Trial]  # type: ignore[valid-type]
    result: Result  # type: ignore[valid-type]
