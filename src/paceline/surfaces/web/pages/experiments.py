"""The pages of experiments, and of searches for a better job file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from paceline.model.jobs.run_queries import MOST_RUNS, RunQuery
from paceline.model.jobs.runs import RunSummary
from paceline.model.jobs.selectors import Requirement, Selector
from paceline.model.studies.experiments import Experiment
from paceline.model.studies.tunings import Tuning
from paceline.services.studying.trials import LABEL
from paceline.specs.edits import edits
from paceline.surfaces.charts.strips import Strip
from paceline.surfaces.views import experiments as experiment_views
from paceline.surfaces.views import tunings as tuning_views
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.pages import rendering
from paceline.surfaces.web.routes import experiments as routes
from paceline.surfaces.web.routes.experiments import MOST_STUDIES, Name
from paceline.tuning import comparisons, summaries

router = APIRouter(include_in_schema=False, prefix="/experiments")
Readable = Annotated[CallerRequest, Depends(may(ApiOperation.STUDIES))]
#: The two lines of a diff that name the files.
_HEAD = 2


@router.get("")
def list_experiments(request: Request, asked: Readable) -> HTMLResponse:
    """Show how far each of them is."""
    return rendering.page(request, "experiments.html", studies=routes.listed(asked, MOST_STUDIES))


@router.get("/{name}")
def show(request: Request, asked: Readable, name: Name, part: bool = False) -> HTMLResponse:
    """Show one of them, or the part of its page that changes."""
    study = asked.site.store.study(name)
    values = _experiment(study) if isinstance(study, Experiment) else _tuning(study)
    runs = _runs(asked, name)
    return rendering.page(
        request,
        "experiment_now.html" if part else "experiment.html",
        study=study,
        progress=routes.progress(study),
        known={each.name for each in runs},
        running=[each.name for each in runs if not each.phase.is_final],
        **values,
    )


def _runs(asked: CallerRequest, name: str) -> Sequence[RunSummary]:
    """Return the existing runs of a study; a simulated study has none."""
    of_study = Selector((Requirement(LABEL, frozenset({name})),))
    return asked.jobs.page(RunQuery(selector=of_study, limit=MOST_RUNS)).runs


def _experiment(study: Experiment) -> dict[str, Any]:
    variant_comparisons = comparisons.compared(study)
    speeds = {
        variant.name: [
            repeat.outcome.speed
            for repeat in study.done
            if repeat.variant == variant.name and repeat.outcome.speed
        ]
        for variant in study.variants
    }
    base = speeds[study.baseline]
    return {
        "found": variant_comparisons,
        "speeds": speeds,
        "base": sum(base) / len(base) if base else None,
        "strip": Strip.of([speed for variant_speeds in speeds.values() for speed in variant_speeds]),
        "times": Strip.of(
            [end for comparison in variant_comparisons for end in comparison.times or ()], is_logarithmic=True
        ),
        "effect": experiment_views.effect,
        "changes": {variant.name: edits.listed(study.source, variant.changes) for variant in study.variants},
    }


def _tuning(study: Tuning) -> dict[str, Any]:
    judged = [trial.judgement for trial in study.finished if trial.judgement and trial.judgement.times]
    best = study.best
    return {
        "summary": summaries.summary(study),
        "conclusion": [tuning_views.conclusion(study), *tuning_views.proof(study)],
        "diff": _diff(study.source, best.source) if best else [],
        "changed": tuning_views.changed,
        "verdict": tuning_views.verdict,
        "strip": Strip.of([trial.outcome.speed for trial in study.finished if trial.outcome]),
        "times": Strip.of(
            [end for judgement in judged for end in (judgement.times, judgement.low, judgement.high)],
            is_logarithmic=True,
        ),
    }


def _diff(before: str, after: str) -> Sequence[str]:
    return edits.difference(before, after).splitlines()[_HEAD:]
