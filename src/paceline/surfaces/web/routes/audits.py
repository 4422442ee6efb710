"""The audit log: who changed what."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from paceline.model.jobs.audits import Audit
from paceline.surfaces import documents
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.schemas import checks as schemas

router = APIRouter(prefix="/audits", tags=["audits"])


@router.get("", operation_id="listAudits", response_model=schemas.AuditList)
def list_audits(
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.AUDITS))],
    job: Annotated[str | None, Query(description="only of this one", max_length=253)] = None,
    limit: Annotated[int, Query(description="at most so many", ge=1, le=500)] = 100,
    before_id: Annotated[int | None, Query(description="as the page before says", ge=0, le=2**63 - 1)] = None,
) -> dict[str, Any]:
    """Return who changed what through the server, the latest first."""
    found = asked.site.store.audits(scope=asked.jobs.scope(), job=job, limit=limit + 1, before_id=before_id)
    shown = found[:limit]
    items = [_shown(number, each) for number, each in shown]
    before = shown[-1][0] if len(found) > limit else None
    return documents.document("AuditList", {"items": items, "before_id": before})


def _shown(number: int, audit: Audit) -> dict[str, Any]:
    found = documents.plain(audit)
    del found["scope"]
    return {"id": number, **found}
