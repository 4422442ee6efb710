"""The application: routes, guards, and what they stand on."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from fastapi import FastAPI
from fastapi.routing import APIRouter
from starlette.responses import PlainTextResponse, Response
from starlette.staticfiles import StaticFiles

from paceline.services.advisors import Advisor
from paceline.surfaces import templates
from paceline.surfaces.web import descriptions, guards, problems
from paceline.surfaces.web.feeds import Feeds
from paceline.surfaces.web.guards import Guard, Rates
from paceline.surfaces.web.namespaces import Namespaces
from paceline.surfaces.web.origins import Proxies
from paceline.surfaces.web.pages import advice as advice_pages
from paceline.surfaces.web.pages import cluster, compare, rendering, rules, sessions, submits
from paceline.surfaces.web.pages import experiments as experiment_pages
from paceline.surfaces.web.pages import job as job_page
from paceline.surfaces.web.pages import jobs as job_pages
from paceline.surfaces.web.pages import models as model_pages
from paceline.surfaces.web.pages import namespaces as namespace_pages
from paceline.surfaces.web.routes import (
    advice,
    audits,
    capacities,
    changes,
    checks,
    comparisons,
    experiments,
    jobs,
    logs,
    measurements,
    models,
    quotas,
    recordings,
    streams,
    traces,
)
from paceline.surfaces.web.sites import Site

PREFIX = "/api/v1"
_DESCRIPTION = """Submit, watch, explain and change parameter-server training jobs.

Times are ISO 8601 in UTC, durations seconds, and what was not measured is null. Errors are
`application/problem+json`. Whoever asks sends `Authorization: Bearer TOKEN`.
"""
_ROUTES = (
    jobs,
    changes,
    logs,
    measurements,
    traces,
    streams,
    advice,
    checks,
    audits,
    comparisons,
    experiments,
    quotas,
    capacities,
    recordings,
    models,
)
_PAGES = (
    sessions,
    job_pages,
    job_page,
    submits,
    rules,
    advice_pages,
    compare,
    experiment_pages,
    model_pages,
    cluster,
    namespace_pages,
)


def application(
    site: Site,
    *,
    hosts: Collection[str] | None = None,
    proxies: Proxies | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> FastAPI:
    """Return the application of a site.

    Args:
        site: what it stands on.
        hosts: the names, with ports, by which it may be called; None: any.
        proxies: those that are believed when they say where requests come from; None: none is.
        clock: seconds of any clock that only goes on.
    """
    made = FastAPI(
        title="Paceline",
        version="v1",
        description=_DESCRIPTION,
        docs_url=None,  # Its page would load scripts from elsewhere.
        redoc_url=None,
        openapi_url=f"{PREFIX}/openapi.json",
    )
    made.state.site = site
    made.state.feeds = Feeds()
    made.state.advisor = Advisor(clock)
    made.state.tasks = set()
    made.state.wrong = Rates(guards.WRONG_RATE, guards.WRONG_BURST, clock)
    problems.handle(made, sessions.of_problem)
    api = APIRouter(prefix=PREFIX)
    for each in _ROUTES:
        api.include_router(each.router)
    made.include_router(api)
    made.add_api_route(guards.LIVES, _healthy, include_in_schema=False)
    made.add_api_route(guards.READY, lambda: _ready(site), include_in_schema=False)
    for page in _PAGES:
        made.include_router(page.router)
    made.add_api_route("/static/style.css", _style, include_in_schema=False)
    made.mount("/static", StaticFiles(directory=rendering.STATIC))
    descriptions.describe(made)
    made.add_middleware(Namespaces)
    made.add_middleware(
        Guard,
        hosts=None if hosts is None else frozenset(hosts),
        rates=Rates(guards.RATE, guards.BURST, clock),
        proxies=proxies or Proxies(),
    )
    return made


def _style() -> Response:
    """Answer with the style that reports have, too."""
    return Response(templates.style(), media_type="text/css")


def _healthy() -> PlainTextResponse:
    return PlainTextResponse("ok")


def _ready(site: Site) -> PlainTextResponse:
    """Answer whether the store answers."""
    site.store.run_names_like("\N{REPLACEMENT CHARACTER}")
    return PlainTextResponse("ok")
