"""Errors as ``application/problem+json`` (RFC 9457), and the HTTP status of each of our errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

from paceline.engines.kubernetes.clusters import ClusterError
from paceline.errors import (
    Conflict,
    EngineError,
    InvalidInput,
    NotFound,
    PacelineError,
    StoreError,
    WaitTimeout,
)
from paceline.model.explanations.findings import Finding
from paceline.specs import DocumentError
from paceline.surfaces import documents

MEDIA_TYPE = "application/problem+json"
log = logging.getLogger("paceline.web")

#: The prefix of the ``type`` of a problem that is one of our errors; the name of its class follows.
ERROR_TYPE = "urn:paceline:error:"
#: The first class that matches counts.
_STATUSES: tuple[tuple[type[PacelineError], HTTPStatus], ...] = (
    (InvalidInput, HTTPStatus.UNPROCESSABLE_ENTITY),
    (NotFound, HTTPStatus.NOT_FOUND),
    (Conflict, HTTPStatus.CONFLICT),
    (WaitTimeout, HTTPStatus.CONFLICT),
    (StoreError, HTTPStatus.SERVICE_UNAVAILABLE),
    (EngineError, HTTPStatus.CONFLICT),
)


class RequestRefused(Exception):
    """A request that is refused, and why.

    Args:
        status: the HTTP status.
        detail: what happened, to what, and why.
        hint: what to do next; empty: there is nothing to add.
        headers: headers of the answer.
        more: other members of the problem.
    """

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        *,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.hint, self.more = status, detail, hint, more
        self.headers = dict(headers or {})


class Findings(InvalidInput):
    """A job file that is well-formed but wrong; ``findings`` says what is wrong."""

    def __init__(self, message: str, findings: Sequence[Finding]) -> None:
        super().__init__(message, "what a code means: GET /api/v1/codes")
        self.findings = findings


def response(
    status: HTTPStatus, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    """Return the answer that says what went wrong.

    Args:
        status: the HTTP status.
        detail: what happened, to what, and why.
        headers: headers of the answer.
        more: other members of the problem; empty ones are left out.
    """
    body = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    body |= {name: value for name, value in more.items() if value}
    return JSONResponse(body, status.value, headers=headers, media_type=MEDIA_TYPE)


#: Returns the page that shows what went wrong.
Page = Callable[[Request, RequestRefused], Response]


def handle(application: FastAPI, page: Page) -> Callable[[Request, Exception], Response]:
    """Install handlers for every error of an application, and return the handler.

    Programs get a problem as an answer, browsers a page.
    """

    def handler(request: Request, error: Exception) -> Response:
        found = _of_any(request, error)
        if "text/html" in request.headers.get("accept", ""):
            answer = page(request, found)
            answer.headers.update(found.headers)
            return answer
        return response(found.status, found.detail, headers=found.headers, hint=found.hint, **found.more)

    for kind in (PacelineError, RequestRefused, RequestValidationError, HTTPException, Exception):
        application.add_exception_handler(kind, handler)
    return handler


def _of_any(request: Request, error: Exception) -> RequestRefused:
    match error:
        case RequestRefused():
            return error
        case PacelineError():
            return _of_ours(error)
        case RequestValidationError():
            return _invalid(error)
        case HTTPException():
            return RequestRefused(HTTPStatus(error.status_code), str(error.detail), headers=error.headers)
    # An unexpected error: its traceback is logged and not sent to the caller.
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return RequestRefused(HTTPStatus.INTERNAL_SERVER_ERROR, "an error in Paceline; its log has the traceback")


def _of_ours(error: PacelineError) -> RequestRefused:
    status = next(
        (http_status for kind, http_status in _STATUSES if isinstance(error, kind)), HTTPStatus.CONFLICT
    )
    if isinstance(error, ClusterError):
        status = _of_cluster(error)
    is_down = status is HTTPStatus.SERVICE_UNAVAILABLE
    if is_down:
        log.warning("%s", error.message)
    errors = findings = None
    if isinstance(error, DocumentError):
        errors = [
            {
                "path": problem.path,
                "message": problem.message,
                "line": problem.position.line,
                "column": problem.position.column,
                "excerpt": problem.excerpt,
            }
            for problem in error.problems
        ]
    if isinstance(error, Findings):
        findings = [documents.plain(finding) for finding in error.findings]
    error_name = next(
        kind.__name__ for kind in type(error).__mro__ if kind.__module__ == PacelineError.__module__
    )
    return RequestRefused(
        status, error.message, headers={"Retry-After": "5"} if is_down else None, hint=error.hint,
        errors=errors, findings=findings, type=ERROR_TYPE + error_name,
    )  # fmt: skip


def _of_cluster(error: ClusterError) -> HTTPStatus:
    """Return the API server's own status if it rejects a request; else the status for an outage."""
    if error.is_missing or error.is_forbidden or error.is_refusal or error.is_taken or error.is_conflict:
        return HTTPStatus(error.code or HTTPStatus.CONFLICT)
    return HTTPStatus.SERVICE_UNAVAILABLE


def _invalid(error: RequestValidationError) -> RequestRefused:
    errors = [{"path": ".".join(map(str, each["loc"])), "message": each["msg"]} for each in error.errors()]
    said = "; ".join(f"{each['path']}: {each['message']}" for each in errors)
    return RequestRefused(HTTPStatus.UNPROCESSABLE_ENTITY, said, errors=errors)
