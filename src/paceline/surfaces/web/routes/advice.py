"""What could be changed in a job, and what that would bring."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from paceline.model.runs import KUBERNETES
from paceline.model.tunings import Objective
from paceline.services import predictions, proposals, recordings, tunings
from paceline.specs import assignments
from paceline.surfaces import documents
from paceline.surfaces.diffs import Diffs
from paceline.surfaces.web.callers import Asked, may
from paceline.surfaces.web.operations import Operation
from paceline.surfaces.web.routes.jobs import Name
from paceline.surfaces.web.schemas import checks as schemas

router = APIRouter(prefix="/jobs/{name}", tags=["advice"])
Readable = Annotated[Asked, Depends(may(Operation.GET))]


@router.get("/proposals", operation_id="listProposals", response_model=schemas.ProposalList)
def list_proposals(asked: Readable, name: Name) -> dict[str, Any]:
    """Return what could be changed in a job that was measured, the likeliest gain first."""
    recording = recordings.whole(asked.jobs, name, thinned=True)
    on_cluster = asked.site.engine == KUBERNETES
    objective = tunings.limited(Objective(), recording.run.spec, on_cluster=on_cluster)
    diffs = Diffs.of(recording.run)
    found = proposals.proposals(recording, objective)
    items = [{**documents.plain(each), "diff": diffs.diff(each.changes)} for each in found]
    return documents.document("ProposalList", {"items": items})


@router.post("/predict", operation_id="predictJob", response_model=schemas.Forecast)
def predict(asked: Readable, name: Name, body: schemas.Prediction) -> dict[str, Any]:
    """Return how fast a job would train with another layout, from what was measured of it."""
    changes = [assignments.change(each) for each in body.set]
    model = predictions.model(recordings.whole(asked.jobs, name, thinned=True))
    return documents.document("Forecast", documents.plain(predictions.forecast(model, changes)))
