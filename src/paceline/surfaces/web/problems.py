"""Errors as ``application/problem+json`` (RFC 9457), and which status each of ours has."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from paceline.errors import (
    Conflict,
    EngineError,
    InvalidInput,
    NotFound,
    PacelineError,
    SourceError,
    StoreError,
    WaitTimeout,
)
from paceline.model.findings import Finding
from paceline.specs import JobFileError
from paceline.surfaces import documents

MEDIA_TYPE = "application/problem+json"
log = logging.getLogger("paceline.web")

#: The most special first.
_STATUSES: tuple[tuple[type[PacelineError], HTTPStatus], ...] = (
    (InvalidInput, HTTPStatus.UNPROCESSABLE_ENTITY),
    (NotFound, HTTPStatus.NOT_FOUND),
    (Conflict, HTTPStatus.CONFLICT),
    (WaitTimeout, HTTPStatus.CONFLICT),
    (StoreError, HTTPStatus.SERVICE_UNAVAILABLE),
    (SourceError, HTTPStatus.SERVICE_UNAVAILABLE),
    (EngineError, HTTPStatus.CONFLICT),
)


class Refused(Exception):
    """A request that is not answered, and why."""

    def __init__(
        self, status: HTTPStatus, detail: str, *, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.hint = status, detail, hint
        self.headers = dict(headers or {})


class Findings(InvalidInput):
    """A job file that is legal but wrong; ``findings`` says what is."""

    def __init__(self, message: str, findings: Sequence[Finding]) -> None:
        super().__init__(message, "what a code means: GET /api/v1/rules")
        self.findings = findings


def response(
    status: HTTPStatus, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    """Return the answer that says what went wrong.

    Args:
        status: of HTTP.
        detail: what happened, to what, and why.
        headers: of the answer.
        more: other members that are not empty.
    """
    body = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    body |= {name: value for name, value in more.items() if value}
    return JSONResponse(body, status.value, headers=headers, media_type=MEDIA_TYPE)


def handle(application: FastAPI) -> None:
    """Let every error of an application be answered as a problem."""
    application.add_exception_handler(PacelineError, _of_ours)
    application.add_exception_handler(Refused, _refused)
    application.add_exception_handler(RequestValidationError, _invalid)
    application.add_exception_handler(HTTPException, _of_http)
    application.add_exception_handler(Exception, _unexpected)


def _of_ours(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, PacelineError)
    status = next((each for kind, each in _STATUSES if isinstance(error, kind)), HTTPStatus.CONFLICT)
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        log.warning("%s", error.message)
    errors = findings = None
    if isinstance(error, JobFileError):
        errors = [
            {
                "path": each.path,
                "message": each.message,
                "line": each.position.line,
                "column": each.position.column,
                "excerpt": each.excerpt,
            }
            for each in error.problems
        ]
    if isinstance(error, Findings):
        findings = [documents.plain(each) for each in error.findings]
    headers = {"Retry-After": "5"} if status is HTTPStatus.SERVICE_UNAVAILABLE else None
    return response(status, error.message, headers=headers, hint=error.hint, errors=errors, findings=findings)


def _refused(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return response(error.status, error.detail, hint=error.hint, headers=error.headers)


def _invalid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    errors = [{"path": ".".join(map(str, each["loc"])), "message": each["msg"]} for each in error.errors()]
    said = "; ".join(f"{each['path']}: {each['message']}" for each in errors)
    return response(HTTPStatus.UNPROCESSABLE_ENTITY, said, errors=errors)


def _of_http(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return response(HTTPStatus(error.status_code), str(error.detail), headers=error.headers)


def _unexpected(request: Request, error: Exception) -> JSONResponse:
    """Answer what nobody thought of; its traceback is logged, and nothing of it told."""
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return response(HTTPStatus.INTERNAL_SERVER_ERROR, "an error in Paceline; its log has the traceback")
