"""The quotas of a namespace on a cluster, and how much of them is used."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from paceline.model.jobs.quotas import Use
from paceline.surfaces import documents
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.schemas import quotas as schemas

router = APIRouter(prefix="/quotas", tags=["cluster"])


@router.get("", operation_id="listQuotas", response_model=schemas.QuotaList)
def list_quotas(asked: Annotated[CallerRequest, Depends(may(ApiOperation.QUOTAS))]) -> dict[str, Any]:
    """Return the quotas and queues of a namespace with what is taken of them; a machine has none."""
    found = asked.site.quotas(asked.namespace)
    items = [{**documents.plain(each), "uses": [_use(use) for use in each.uses]} for each in found.items]
    return documents.document("QuotaList", {"items": items, "unknown": list(found.unknown)})


def _use(use: Use) -> dict[str, Any]:
    return {**documents.plain(use), "share": use.share}
