"""How a browser logs in: the link with the token sets a cookie that no script and no other site can read.

The cookie is the ticket of a session, not the token (`tickets`).
"""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from paceline.surfaces.web import callers, problems
from paceline.surfaces.web.pages import rendering
from paceline.surfaces.web.pages.forms import Fields
from paceline.surfaces.web.sites import Site
from paceline.surfaces.web.tickets import SESSION_SECONDS, Tickets

router = APIRouter(include_in_schema=False)


@router.get("/enter")
async def enter_by_link(request: Request, token: str = "") -> Response:
    """Let a browser in that has followed the link."""
    site: Site = request.app.state.site
    if not site.gate.takes_links:
        return entrance(request, HTTPStatus.UNAUTHORIZED if token else HTTPStatus.OK)
    return await _entered(request, token)


@router.post("/enter")
async def enter_by_form(request: Request, fields: Fields) -> Response:
    """Let a browser in whose user has entered the token."""
    callers.check_entry(request)
    return await _entered(request, fields.get("token", "").strip())


async def _entered(request: Request, token: str) -> Response:
    site: Site = request.app.state.site
    if site.gate.believes_headers:  # The proxy names the caller in each request.
        return entrance(request, HTTPStatus.UNAUTHORIZED)
    found = await callers.recognised(request, token)
    if found is None:
        callers.count_guess(request)
        return entrance(request, HTTPStatus.UNAUTHORIZED)
    tickets: Tickets = request.app.state.tickets
    ticket = await run_in_threadpool(tickets.begin, token, found.name)
    if request.headers.get("sec-fetch-site") == "cross-site":
        # A browser that comes from another site or a file does not send a strict cookie after a redirect:
        # it has to follow a link on a page of this server.
        answer: Response = rendering.page(request, "entered.html")
    else:
        answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
    answer.set_cookie(
        callers.cookie(request),
        ticket,
        max_age=SESSION_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


@router.post("/leave")
def leave(request: Request) -> Response:
    """End the session, and forget its cookie."""
    callers.check_entry(request)
    tickets: Tickets = request.app.state.tickets
    tickets.end(request.cookies.get(callers.cookie(request), ""))
    answer = RedirectResponse("/enter", HTTPStatus.SEE_OTHER)
    answer.delete_cookie(callers.cookie(request), httponly=True, samesite="strict")
    return answer


def entrance(request: Request, status: HTTPStatus) -> Response:
    """Return the page that asks for the token."""
    site: Site = request.app.state.site
    by_proxy = site.gate.believes_headers
    return rendering.page(request, "entrance.html", status=status.value, by_proxy=by_proxy)


def of_problem(request: Request, problem: problems.RequestRefused) -> Response:
    """Return the page that says why a request is refused."""
    is_part = "hx-request" in request.headers
    if problem.status is HTTPStatus.UNAUTHORIZED and not is_part:
        return entrance(request, problem.status)
    answer = rendering.page(
        request,
        "complaint.html" if is_part else "problem.html",
        status=problem.status.value,
        title=problem.status.phrase,
        detail=problem.detail,
        hint=problem.hint,
    )
    if problem.status is HTTPStatus.UNAUTHORIZED:
        # A part of a page repeats its request every few seconds. Once the caller is unknown, the browser
        # reloads the whole page, which becomes the entrance and makes no more requests.
        answer.headers["HX-Refresh"] = "true"
    return answer
