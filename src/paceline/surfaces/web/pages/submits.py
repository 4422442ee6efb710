"""The page on which a job is submitted."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import ValidationError

from paceline.errors import PacelineError
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.pages import rendering
from paceline.surfaces.web.pages.forms import Fields
from paceline.surfaces.web.problems import Findings
from paceline.surfaces.web.routes import jobs as routes
from paceline.surfaces.web.schemas.runs import Submit

router = APIRouter(include_in_schema=False, prefix="/submit")
#: How many characters of the number of a form are read.
_MOST_FORM = 64
Submitting = Annotated[CallerRequest, Depends(may(ApiOperation.SUBMIT))]


@router.get("")
def show(request: Request, _asked: Submitting) -> HTMLResponse:
    """Show an empty form."""
    return _page(request, {})


@router.post("")
def submit(request: Request, asked: Submitting, fields: Fields) -> Response:
    """Submit the job and go to its page; what is wrong is said beside what was entered."""
    source = fields.get("source", "").replace("\r\n", "\n")  # Browsers send CRLF line ends.
    try:
        given = {"base": fields.get("base") or None, "fail_on": fields.get("fail_on") or None}
        body = Submit.model_validate({"source": source, **given})
        run = routes.submitted(asked, body, _key(fields, body))
    except ValidationError as error:
        return _page(request, fields, error.errors()[0]["msg"])
    except PacelineError as error:
        return _page(request, fields, error.message, error)
    return RedirectResponse(f"/jobs/{quote(run.name)}", HTTPStatus.SEE_OTHER)


def _key(fields: Mapping[str, str], body: Submit) -> str | None:
    """Return the key by which a form that is sent twice makes one job; None: the form has no number.

    The text belongs to the key, so a user who corrects it, or goes back and changes it, submits another job.
    """
    form = fields.get("form", "")[:_MOST_FORM]
    text = hashlib.sha256(body.model_dump_json().encode()).hexdigest()
    return f"{form} {text}" if form else None


def _page(
    request: Request, fields: Mapping[str, str], complaint: str = "", error: PacelineError | None = None
) -> HTMLResponse:
    return rendering.page(
        request,
        "submit.html",
        status=HTTPStatus.UNPROCESSABLE_ENTITY if complaint else HTTPStatus.OK,
        fields=fields,
        form=fields.get("form", "")[:_MOST_FORM] or secrets.token_urlsafe(16),
        complaint=complaint,
        hint=error.hint if error else "",
        findings=error.findings if isinstance(error, Findings) else (),
    )
