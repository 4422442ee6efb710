"""The page on which the user chooses a namespace of the cluster."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse, Response

from paceline.surfaces import namespace_names
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.pages import rendering

router = APIRouter(include_in_schema=False, prefix="/namespaces")
#: For how many namespaces the server checks whether the user may see their jobs.
MOST_NAMESPACES = 200


@router.get("")
def choose(
    request: Request,
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.ASK))],
    name: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show the namespaces whose jobs the user may see, or go to the namespace that they named."""
    if namespace_names.is_namespace(name):
        return RedirectResponse(f"/n/{name}/", HTTPStatus.SEE_OTHER)
    found = [
        each
        for each in asked.site.namespaces()[:MOST_NAMESPACES]
        if asked.site.gate.allows(asked.caller, ApiOperation.LIST, each)
    ]
    return rendering.page(request, "namespaces.html", found=found, is_wrong=bool(name), name=name)
