"""Answers that need no job: findings about job files, explanations of codes, the schema."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse

from paceline import specs
from paceline.surfaces import documents, explanations
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.schemas import checks as schemas

router = APIRouter(tags=["checks"])
Known = Annotated[CallerRequest, Depends(may(ApiOperation.ASK))]


@router.post("/lint", operation_id="lintJobFile", response_model=schemas.FindingList)
def lint(asked: Known, body: schemas.JobFile) -> dict[str, Any]:
    """Return what is legal in a job file, but wrong; one that is not legal is a problem (422) with places."""
    found = asked.job_files.read(body.source).findings
    return documents.document("FindingList", {"items": [documents.plain(each) for each in found]})


@router.get("/codes", operation_id="listCodes", response_model=schemas.CodeList)
def list_codes(_asked: Known) -> dict[str, Any]:
    """Return all codes of lint rules and causes, each with what it is about."""
    items = [documents.plain(each) for each in explanations.entries()]
    return documents.document("CodeList", {"items": items})


class SchemaResponse(JSONResponse):
    """A JSON Schema."""

    media_type = "application/schema+json"


@router.get("/schema", operation_id="getSchema", response_class=SchemaResponse)
def get_schema(_asked: Known) -> SchemaResponse:
    """Return the JSON Schema of job files."""
    return SchemaResponse(specs.json_schema())
