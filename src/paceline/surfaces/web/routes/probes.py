"""Probes of running jobs: begun, and their results."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Annotated, Any

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool

from paceline.errors import PacelineError
from paceline.model.measures.probes import Probe
from paceline.services.studying import probes
from paceline.surfaces import documents
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.problems import RequestRefused
from paceline.surfaces.web.routes.jobs import Name
from paceline.surfaces.web.schemas import probes as schemas

router = APIRouter(prefix="/jobs/{name}/probes", tags=["probes"])
log = logging.getLogger(__name__)
#: The most probes at the same time; each holds a thread.
MOST_PROBES = 20


@router.get("", operation_id="listProbes", response_model=schemas.ProbeList)
def list_probes(
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.GET))], name: Name
) -> dict[str, Any]:
    """Return the probes of a job, the oldest first; one that goes on, or was killed, has no ``ended``."""
    items = [documents.probe(each) for each in asked.jobs.probes(name)]
    return documents.document("ProbeList", {"items": items})


@router.post("", operation_id="startProbe", response_model=schemas.ProbeBegun, status_code=202)
async def start_probe(
    request: Request,
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.PROBE))],
    name: Name,
    body: schemas.ProbeWanted,
) -> dict[str, Any]:
    """Begin to probe a job that runs: one part after the other has less for some seconds."""
    with contextlib.ExitStack() as place:
        place.enter_context(_counted(request.app.state.probes))
        go = await run_in_threadpool(_begin, asked, name, body)
        task = asyncio.create_task(_probe(go, name))
        tasks: set[asyncio.Task[None]] = request.app.state.tasks
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        held = place.pop_all()
        task.add_done_callback(lambda _: held.close())
    return documents.document("ProbeBegun", {"name": name, "seconds": body.seconds})


@contextlib.contextmanager
def _counted(probing: set[object]) -> Iterator[None]:
    """Count a probe while it goes on.

    Raises:
        RequestRefused: as many probes go on as may.
    """
    if len(probing) >= MOST_PROBES:
        raise RequestRefused(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"{len(probing)} probes go on here, and no more may",
            hint="ask again when one has ended",
        )
    probe = object()
    probing.add(probe)
    try:
        yield
    finally:
        probing.discard(probe)


def _begin(asked: CallerRequest, name: str, body: schemas.ProbeWanted) -> Callable[[], Probe]:
    prober = probes.Prober.of(asked.jobs, seconds=body.seconds, most_share=body.cost_percent / 100)
    go = prober.begin(name)
    asked.note(name, f"for at most {body.seconds:g} s, at the cost of at most {body.cost_percent:g} %")
    return go


async def _probe(go: Callable[[], Probe], name: str) -> None:
    try:
        # A thread of its own, for it takes up to an hour; threads that all requests share are few.
        await to_thread.run_sync(go, limiter=CapacityLimiter(1))
    except PacelineError as error:  # No request waits for the probe; its results so far are kept.
        log.warning("the probe of %s ended early: %s", name, error.message)
