"""Models and their trend from run to run; and how long finished runs are kept."""

from __future__ import annotations

import collections
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query

from paceline.model.studies.trained_models import ModelRun, TrainedModel, per_core_hour
from paceline.services import retentions
from paceline.services.studying import model_trends
from paceline.surfaces import documents
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.schemas import models as schemas
from paceline.tuning.memories import Regression

router = APIRouter(tags=["models"])
Listing = Annotated[CallerRequest, Depends(may(ApiOperation.LIST))]
Name = Annotated[str, Path(description="of the model, as jobs have it", max_length=100)]
MOST_MODELS = 200


@router.get("/models", operation_id="listModels", response_model=schemas.ModelList)
def list_models(
    asked: Listing, limit: Annotated[int, Query(description="at most so many", ge=1, le=MOST_MODELS)] = 50
) -> dict[str, Any]:
    """Return the models that jobs train, the last trained first.

    Jobs of one command, or label `model`, and one shape are of one model.
    """
    store, engine = asked.site.store, asked.site.engine
    found = model_trends.models(store, engine=engine, scope=asked.jobs.scope(), limit=limit)
    return documents.document("ModelList", {"items": [listed(each) for each in found]})


def listed(model: TrainedModel) -> dict[str, Any]:
    """Return the entry of a model in a list."""
    last = next((each for each in model.told if each.examples_per_second), None)
    return {
        "name": model.name,
        "runs": model.runs,
        "last_at": documents.instant(model.last_at),
        "examples_per_second": last.examples_per_second if last else None,
        "examples_per_core_hour": last.examples_per_core_hour if last else None,
        "auc": next((each.auc for each in model.told if each.auc is not None), None),
    }


@router.get("/models/{name}/trend", operation_id="getTrend", response_model=schemas.Trend)
def get_trend(asked: Listing, name: Name) -> dict[str, Any]:
    """Return how a model did from run to run, and which run did worse than those before it."""
    found = trend(asked, name)
    worse = collections.defaultdict(list)
    for each in found.regressions:
        worse[each.run.name].append(_regression(each))
    items = [{**trained(each), "regressions": worse[each.name]} for each in found.runs]
    return documents.document("Trend", {"model": name, "items": items})


def trend(asked: CallerRequest, name: str) -> model_trends.ModelTrend:
    """Return the trend of a model from run to run.

    Raises:
        NotFound: no job that the caller may see trains the model.
    """
    return model_trends.trend(asked.site.store, name, engine=asked.site.engine, scope=asked.jobs.scope())


def trained(run: ModelRun) -> dict[str, Any]:
    """Return the entry of a model's run."""
    names = ("examples_per_second", "used_cores", "auc", "log_loss", "code")
    numbers = {name: getattr(run.diagnosis, name, None) for name in names}
    return {
        "name": run.name,
        "submitted_at": documents.instant(run.submitted_at),
        "phase": run.phase.value,
        **numbers,
        "examples_per_core_hour": per_core_hour(numbers["examples_per_second"], numbers["used_cores"]),
    }


def _regression(found: Regression) -> dict[str, Any]:
    names = ("measure", "times", "low", "high", "before")
    return {name: documents.plain(getattr(found, name)) for name in names}


@router.get("/history", operation_id="getHistory", response_model=schemas.History)
def get_history(asked: Listing) -> dict[str, Any]:
    """Return for how long finished jobs are kept in which detail, and what they take."""
    return documents.document("History", kept(asked))


def kept(asked: CallerRequest) -> dict[str, Any]:
    """Return for how long finished jobs are kept in which detail, and the size of the store."""
    store = asked.site.store
    return {
        **documents.plain(retentions.of_environment()),
        "store_bytes": store.size_bytes(),
        "runs": store.detail_counts(engine=asked.site.engine, prefix=asked.jobs.scope()),
    }
