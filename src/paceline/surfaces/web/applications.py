"""The application: its routes, its guards, and the objects that both use."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import AsyncIterator, Callable, Collection

from fastapi import FastAPI, Request
from fastapi.routing import APIRouter
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute
from starlette.staticfiles import StaticFiles

from paceline.services.studying.computation_cache import Advisor
from paceline.surfaces import templates
from paceline.surfaces.web import descriptions, guards, problems
from paceline.surfaces.web.feeds import Feeds
from paceline.surfaces.web.guards import RequestGuard
from paceline.surfaces.web.job_files import JobFiles
from paceline.surfaces.web.namespaces import Namespaces
from paceline.surfaces.web.origins import Proxies
from paceline.surfaces.web.pages import advice as advice_pages
from paceline.surfaces.web.pages import cluster, compare, rendering, rules, sessions, submits
from paceline.surfaces.web.pages import experiments as experiment_pages
from paceline.surfaces.web.pages import job as job_page
from paceline.surfaces.web.pages import jobs as job_pages
from paceline.surfaces.web.pages import models as model_pages
from paceline.surfaces.web.pages import namespaces as namespace_pages
from paceline.surfaces.web.rates import Guesses, RateLimiter
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
    probes,
    quotas,
    recordings,
    streams,
    traces,
)
from paceline.surfaces.web.sites import Site
from paceline.surfaces.web.tickets import Tickets

PREFIX = "/api/v1"
_TITLE = "Paceline"
_DESCRIPTION = """Submit, watch, explain and change parameter-server training jobs.

Times are ISO 8601 in UTC, durations seconds, and what was not measured is null. Errors are
`application/problem+json`. The caller sends `Authorization: Bearer TOKEN`.
"""
_ROUTES = (
    jobs,
    changes,
    probes,
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
    job_files: JobFiles | None = None,
) -> FastAPI:
    """Return the application of a site.

    Args:
        site: the jobs, the store and the gate to serve.
        hosts: the host names, with ports, that requests may address; None: any.
        proxies: proxies whose headers on a request's origin are believed; None: no proxy is believed.
        clock: a monotonic clock in seconds.
        job_files: reads the job files in requests; None: a new reader.
    """
    described = _described()
    # FastAPI's documentation pages would load scripts from other sites.
    web_application = FastAPI(
        title=_TITLE, docs_url=None, redoc_url=None, openapi_url=f"{PREFIX}/openapi.json", lifespan=_living
    )
    web_application.openapi = lambda: described.schema  # type: ignore[method-assign]
    web_application.state.queries = described.queries
    web_application.state.site = site
    web_application.state.feeds = Feeds()
    web_application.state.advisor = Advisor(clock)
    web_application.state.tasks = set()
    web_application.state.probes = set()
    web_application.state.clock = clock
    web_application.state.guesses = Guesses(RateLimiter(guards.WRONG_RATE, guards.WRONG_BURST, clock))
    web_application.state.tickets = Tickets(lambda: site.store, lambda: site.clock(), clock)
    web_application.state.job_files = job_files or JobFiles()
    refuse = problems.handle(web_application, sessions.of_problem)
    web_application.router.routes.extend(_routes())
    web_application.mount("/static", StaticFiles(directory=rendering.STATIC))
    web_application.add_middleware(
        RequestGuard,
        hosts=None if hosts is None else frozenset(hosts),
        rates=RateLimiter(guards.RATE, guards.BURST, clock),
        proxies=proxies or Proxies(),
        refuse=refuse,
    )
    # The middleware added last runs first: the guard sees paths without the namespace prefix.
    web_application.add_middleware(Namespaces)
    return web_application


@contextlib.asynccontextmanager
async def _living(application: FastAPI) -> AsyncIterator[None]:
    """Close the reader of job files when the application ends."""
    try:
        yield
    finally:
        application.state.job_files.close()


@functools.cache
def _routes() -> list[BaseRoute]:
    """Return all routes, cached: they do not depend on an application, and building them takes longest."""
    api = APIRouter(prefix=PREFIX)
    for each in _ROUTES:
        api.include_router(each.router)
    router = APIRouter()
    router.include_router(api)
    router.add_api_route(guards.LIVES, _healthy, include_in_schema=False)
    router.add_api_route(guards.READY, _ready, include_in_schema=False)
    for page in _PAGES:
        router.include_router(page.router)
    router.add_api_route("/static/style.css", _style, include_in_schema=False)
    return router.routes


@functools.cache
def _described() -> descriptions.Description:
    return descriptions.describe(_routes(), title=_TITLE, version="v1", description=_DESCRIPTION)


def _style() -> Response:
    """Return the style sheet, which reports use too."""
    return Response(templates.style(), media_type="text/css")


def _healthy() -> PlainTextResponse:
    return PlainTextResponse("ok")


def _ready(request: Request) -> PlainTextResponse:
    """Check that the store answers."""
    request.app.state.site.store.run_names_like("\N{REPLACEMENT CHARACTER}")
    return PlainTextResponse("ok")
