"""The routes of the application, wherever their routers are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from paceline.surfaces.web.applications import PREFIX
from paceline.surfaces.web.operations import ApiOperation


class Asked(NamedTuple):
    """A request, of a job that is not there, and the operation that it is."""

    method: str
    path: str
    operation: ApiOperation


def asked(application: FastAPI) -> list[Asked]:
    """Return every route that needs a permission: of the API, and of pages."""
    prefix = {True: PREFIX, False: ""}
    return [
        Asked(method, _filled(prefix[route.include_in_schema] + route.path), each)
        for route in routes(application.routes)
        for each in _operations(route.dependant)
        for method in route.methods or ()
    ]


def _filled(path: str) -> str:
    return re.sub(r"\{\w+(:\w+)?\}", "missing", path)


def _operations(dependant: Dependant) -> set[ApiOperation]:
    calls = (each.call for each in dependant.dependencies)
    found = {call.operation for call in calls if call is not None and hasattr(call, "operation")}
    return found.union(*(_operations(each) for each in dependant.dependencies))


def routes(found: Iterable[BaseRoute]) -> Iterator[APIRoute]:
    """Yield every route of an application's routes."""
    for route in found:
        if isinstance(route, APIRoute):
            yield route
        elif hasattr(route, "original_router"):
            yield from routes(route.original_router.routes)
