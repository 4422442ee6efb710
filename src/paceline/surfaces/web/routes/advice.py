"""Possible changes to a job, and their effect."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool

from paceline.services.studying import predictions
from paceline.services.studying.computation_cache import Advisor
from paceline.surfaces import documents
from paceline.surfaces.diffs import Diffs
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.routes.jobs import Name
from paceline.surfaces.web.schemas import checks as schemas

router = APIRouter(prefix="/jobs/{name}", tags=["advice"])
T = TypeVar("T")
Readable = Annotated[CallerRequest, Depends(may(ApiOperation.GET))]


@router.get("/proposals", operation_id="listProposals", response_model=schemas.ProposalList)
async def list_proposals(request: Request, asked: Readable, name: Name) -> dict[str, Any]:
    """Return what could be changed in a job that was measured, the likeliest gain first."""
    advisor: Advisor = request.app.state.advisor
    run = await run_in_threadpool(asked.jobs.get, name)
    found = await computed(advisor.proposals(asked.namespace, run, asked.look_cache))
    diffs = Diffs.of(run)
    items = [{**documents.plain(each), "diff": diffs.diff(each.changes)} for each in found]
    return documents.document("ProposalList", {"items": items})


@router.post("/predict", operation_id="predictJob", response_model=schemas.Forecast)
async def predict(request: Request, asked: Readable, name: Name, body: schemas.Prediction) -> dict[str, Any]:
    """Return how fast a job would train with another layout, from what was measured of it."""
    advisor: Advisor = request.app.state.advisor
    changes = await run_in_threadpool(asked.job_files.changes, body.set)
    run = await run_in_threadpool(asked.jobs.get, name)
    model = await computed(advisor.model(asked.namespace, run, asked.look_cache))
    found = await run_in_threadpool(predictions.forecast, model, changes)
    return documents.forecast(found, model.probed)


async def computed(coming: Future[T]) -> T:
    """Await a computation without a thread; other requests may wait for the same computation."""
    return await asyncio.shield(asyncio.wrap_future(coming))
