"""Experiments, and searches for a better job file: their runs and their results."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query

from paceline.model.studies.experiments import Experiment
from paceline.model.studies.studies import Study, TrialOutcome
from paceline.model.studies.tunings import Trial, Tuning
from paceline.surfaces import documents
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.schemas import experiments as schemas
from paceline.tuning import summaries

router = APIRouter(prefix="/experiments", tags=["experiments"])
Readable = Annotated[CallerRequest, Depends(may(ApiOperation.STUDIES))]
Name = Annotated[str, Path(description="of the experiment or search", max_length=253)]
MOST_STUDIES = 200


@router.get("", operation_id="listExperiments", response_model=schemas.StudyList)
def list_experiments(
    asked: Readable,
    limit: Annotated[int, Query(description="at most so many", ge=1, le=MOST_STUDIES)] = 50,
) -> dict[str, Any]:
    """Return experiments and searches, the last changed first."""
    return documents.document("StudyList", {"items": listed(asked, limit)})


def listed(asked: CallerRequest, limit: int) -> list[dict[str, Any]]:
    """Return the progress of studies, the last changed first."""
    return [
        {**progress(each), "changed_at": documents.instant(at)}
        for at, each in asked.site.store.studies(limit=limit)
    ]


def progress(study: Study) -> dict[str, Any]:
    """Return the progress of a study."""
    return {
        "name": study.name,
        "kind": type(study).__name__,
        "done": study.done_runs,
        "planned": study.planned_runs,
        "is_complete": study.is_complete,
    }


@router.get("/{name}", operation_id="getExperiment", response_model=schemas.Experiment | schemas.Tuning)
def get_experiment(asked: Readable, name: Name) -> dict[str, Any]:
    """Return an experiment with every variant beside the baseline, or a search with its trials."""
    study = asked.site.store.study(name)
    if isinstance(study, Experiment):
        body = documents.experiment(study)
        done = [{**documents.plain(each), "outcome": _outcome(each.outcome)} for each in study.done]
        return {**body, "done": done}
    return documents.document("Tuning", _tuning(study))


def _tuning(study: Tuning) -> dict[str, Any]:
    best = study.best
    return {
        "name": study.name,
        "job": study.job,
        "goal": study.objective.goal.value,
        "most_trials": study.most_trials,
        "source": study.source,
        "best_source": None if best is None else best.source,
        "ended": study.ended,
        "trials": [_trial(each) for each in study.trials],
        "result": documents.plain(summaries.summary(study)),
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "number": trial.number,
        "run": trial.run,
        "base": trial.base,
        "changes": [each.name for each in trial.proposals],
        "outcome": None if trial.outcome is None else _outcome(trial.outcome),
        "judgement": documents.plain(trial.judgement),
    }


def _outcome(outcome: TrialOutcome) -> dict[str, Any]:
    """Return what was measured, without the losses: there are many of them, and the run has them, too."""
    body: dict[str, Any] = documents.plain(outcome)
    del body["losses"]
    return body
