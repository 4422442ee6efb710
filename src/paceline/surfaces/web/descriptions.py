"""The API's description of itself: OpenAPI 3.1, with the problems that every operation may answer with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import Request
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from paceline.errors import InvalidInput
from paceline.specs.yaml_text import problems as problems_of_files
from paceline.surfaces.web import problems
from paceline.surfaces.web.schemas.bases import Problem

_PROBLEMS = {
    "400": "The request cannot be read.",
    "401": "Who asks is not known.",
    "403": "They may not.",
    "404": "There is no such thing.",
    "405": "There is no such operation.",
    "408": "The request did not come to its end.",
    "409": "The job is in a state that does not allow this, or there is no room for it.",
    "413": "The request is too large.",
    "421": "The server is not called by that name.",
    "422": "The request, or a job file in it, is wrong.",
    "429": "Too many requests.",
    "503": "The store or the cluster does not answer.",
}


class Description(NamedTuple):
    """The description of an API.

    Attributes:
        schema: OpenAPI 3.1.
        queries: the query parameters that each operation knows, by the operation's id.
    """

    schema: dict[str, Any]
    queries: Mapping[str, frozenset[str]]


def describe(routes: Sequence[BaseRoute], *, title: str, version: str, description: str) -> Description:
    """Return the description of an API with some routes, problems included."""
    schema = get_openapi(
        title=title, version=version, description=description, routes=routes,
        separate_input_output_schemas=False,
    )  # fmt: skip
    _add_problems(schema)
    return Description(schema, _queries(schema))


def check_query(request: Request) -> None:
    """Check that a request has only query parameters that its operation knows: another may be a misspelling.

    Raises:
        InvalidInput: the operation does not know one of the parameters.
    """
    known = request.app.state.queries.get(request.scope["route"].operation_id)
    if known is None:  # A page: its address may have any parameters.
        return
    for name in request.query_params:
        if name not in known:
            close = problems_of_files.did_you_mean(name, known)
            said = f"there is no parameter {problems_of_files.shown(name)}{close}"
            raise InvalidInput(said, f"there are: {', '.join(sorted(known))}" if known else None)


def _queries(schema: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return the parameters that each operation knows."""
    return {
        operation["operationId"]: frozenset(
            each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"
        )
        for methods in schema["paths"].values()
        for operation in methods.values()
    }


def _add_problems(schema: dict[str, Any]) -> None:
    schemas = schema["components"]["schemas"]
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(problem.pop("$defs", {}))
    schemas["Problem"] = problem
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    content = {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    answers = {status: {"description": why, "content": content} for status, why in _PROBLEMS.items()}
    for methods in schema["paths"].values():
        for operation in methods.values():
            operation["responses"] |= answers
