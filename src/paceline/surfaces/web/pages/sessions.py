"""How a browser comes in: the link with the token leaves a cookie, which no script and no other site sees."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from paceline.surfaces.web import callers, problems
from paceline.surfaces.web.pages import rendering
from paceline.surfaces.web.pages.forms import Fields
from paceline.surfaces.web.sites import Site

router = APIRouter(include_in_schema=False)
SESSION_SECONDS = 7 * 86_400


@router.get("/enter")
def enter_by_link(request: Request, token: str = "") -> Response:
    """Let a browser in that has followed the link."""
    site: Site = request.app.state.site
    if not site.gate.takes_links:
        return entrance(request, HTTPStatus.UNAUTHORIZED if token else HTTPStatus.OK)
    return _entered(request, token)


@router.post("/enter")
def enter_by_form(request: Request, fields: Fields) -> Response:
    """Let a browser in whose user has entered the token."""
    return _entered(request, fields.get("token", "").strip())


def _entered(request: Request, token: str) -> Response:
    callers.check_guesses(request)
    site: Site = request.app.state.site
    if site.gate.caller(callers.credentials(request, token)) is None:
        callers.count_guess(request)
        return entrance(request, HTTPStatus.UNAUTHORIZED)
    answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
    answer.set_cookie(
        callers.cookie(request),
        token,
        max_age=SESSION_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


@router.post("/leave")
def leave(request: Request) -> Response:
    """Forget the cookie."""
    answer = RedirectResponse("/enter", HTTPStatus.SEE_OTHER)
    answer.delete_cookie(callers.cookie(request), httponly=True, samesite="strict")
    return answer


def entrance(request: Request, status: HTTPStatus) -> Response:
    """Return the page that asks for the token."""
    site: Site = request.app.state.site
    by_proxy = site.gate.believes_headers
    return rendering.page(request, "entrance.html", status=status.value, by_proxy=by_proxy)


def of_problem(request: Request, problem: problems.Refused) -> Response:
    """Return the page that says why a request is not answered."""
    is_part = "hx-request" in request.headers
    if problem.status is HTTPStatus.UNAUTHORIZED and not is_part:
        return entrance(request, problem.status)
    return rendering.page(
        request,
        "complaint.html" if is_part else "problem.html",
        status=problem.status.value,
        title=problem.status.phrase,
        detail=problem.detail,
        hint=problem.hint,
    )
