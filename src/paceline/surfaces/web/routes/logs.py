"""The output of replicas."""

from __future__ import annotations

import collections
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from paceline.model.roles import ReplicaId
from paceline.services.logs import LogLine
from paceline.surfaces import documents
from paceline.surfaces.web.callers import Asked, may
from paceline.surfaces.web.operations import Operation
from paceline.surfaces.web.routes.jobs import Name
from paceline.surfaces.web.schemas import logs as schemas

#: A line may be a tensor of a hundred megabytes; nobody reads more of it than that.
LINE_CHARACTERS = 8192

router = APIRouter(prefix="/jobs/{name}", tags=["logs"])


@router.get("/logs", operation_id="listLogLines", response_model=schemas.LogPage)
def list_lines(
    asked: Annotated[Asked, Depends(may(Operation.LOGS))],
    name: Name,
    wanted: Annotated[schemas.LogQuery, Query()],
) -> dict[str, Any]:
    """Return the last lines that a job's replicas have printed, or the last with a text in them."""
    return listed(asked, name, wanted)


def listed(asked: Asked, name: str, wanted: schemas.LogQuery) -> dict[str, Any]:
    """Return the last lines that are wanted.

    Raises:
        NotFound: there is no such job.
    """

    def is_wanted(replica: ReplicaId) -> bool:
        return wanted.role in (None, replica.role) and wanted.index in (None, replica.index)

    text = wanted.search.lower()
    found = asked.jobs.logs(
        asked.jobs.get(name), wanted=is_wanted, attempt=wanted.attempt, tail=None if text else wanted.tail
    )
    last = collections.deque(
        (_shown(line) for line in found if not text or text in line.text.lower()), maxlen=wanted.tail
    )
    gone = [f"{replica}.{attempt}" for replica, attempt in asked.jobs.gone(name) if is_wanted(replica)]
    return documents.document("LogPage", {"items": list(last), "gone": gone})


def _shown(line: LogLine) -> dict[str, Any]:
    return {
        "replica": str(line.replica),
        "attempt": line.attempt,
        "text": line.text[:LINE_CHARACTERS],
        "is_cut": len(line.text) > LINE_CHARACTERS,
    }
