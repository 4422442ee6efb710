"""Traces of a job: requested, listed, summarised; their files, and a file for Perfetto."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi import Path as InPath
from fastapi.responses import FileResponse, JSONResponse
from starlette.concurrency import run_in_threadpool

from paceline.errors import Conflict, NotFound
from paceline.model.traces import traced_steps as models
from paceline.services.observing import traces
from paceline.services.trace_sites import TraceSite
from paceline.sources import traces as sources
from paceline.surfaces import documents, perfetto
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.routes.jobs import Name
from paceline.surfaces.web.schemas import traces as schemas

#: How long trainers see the request for a trace; a trainer that begins later is not traced.
ASKED_SECONDS = 60.0
#: The largest trace that the server reads as a whole; a client reads larger ones itself.
MOST_READ_BYTES = 16 << 20

router = APIRouter(prefix="/jobs/{name}/traces", tags=["traces"])
Readable = Annotated[CallerRequest, Depends(may(ApiOperation.GET))]
TraceName = Annotated[
    str, InPath(description="when it was taken, as lists say it", pattern=schemas.TRACE_NAME)
]


@router.get("", operation_id="listTraces", response_model=schemas.TraceList)
def list_traces(asked: Readable, name: Name) -> dict[str, Any]:
    """Return the traces of a job, the oldest first; on a cluster the newest is brought from its pods."""
    site = asked.jobs.trace_site(asked.jobs.get(name))
    site.fetch()
    items = [{"name": each, "files": _files(site, each)} for each in sources.names(site.run)]
    return documents.document("TraceList", {"items": items})


def _files(site: TraceSite, trace: str) -> list[dict[str, Any]]:
    found = []
    for path in sources.files(site.run, trace):
        with contextlib.suppress(FileNotFoundError):  # The job was deleted meanwhile.
            found.append({"name": path.name, "bytes": path.stat().st_size})
    return found


@router.post("", operation_id="takeTrace", response_model=schemas.TraceAsked, status_code=202)
async def take_trace(
    request: Request,
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.TRACE))],
    name: Name,
    body: schemas.TraceWanted,
) -> dict[str, Any]:
    """Ask the trainers of a job that runs for a trace of their next steps; its files come one by one."""
    trace = body.name or models.name_at(asked.site.clock())
    held = await run_in_threadpool(_ask, asked, name, trace, body.profile_milliseconds)
    task = asyncio.create_task(_hold(held))
    tasks: set[asyncio.Task[None]] = request.app.state.tasks
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return documents.document("TraceAsked", {"name": trace})


def _ask(
    asked: CallerRequest, name: str, trace: str, profile_milliseconds: int | None
) -> contextlib.ExitStack:
    run, _ = traces.traceable(asked.jobs, name)
    asked.note(name, trace)
    with contextlib.ExitStack() as stack:
        site = asked.jobs.trace_site(run)
        stack.enter_context(site.asked(trace))
        if profile_milliseconds is not None:
            site.profile(trace, traces.window(asked.site.clock(), profile_milliseconds))
        return stack.pop_all()


async def _hold(held: contextlib.ExitStack) -> None:
    """Withdraw the request for a trace after a while, or when the server ends."""
    with held:
        await asyncio.sleep(ASKED_SECONDS)


@router.get("/{trace}", operation_id="getTrace", response_model=schemas.Trace)
def get_trace(asked: Readable, name: Name, trace: TraceName) -> dict[str, Any]:
    """Return what the traces of a moment say: bytes and time by variable and PS, where a step's time goes."""
    found = _read(_site(asked, name, trace), name, trace)
    broken = [each.replace(f"{found.folder}/", "") for each in found.broken]
    return documents.trace(name, found.name, found.traces, broken=broken, refused=found.refused)


@router.get("/{trace}/perfetto", operation_id="getPerfettoFile", response_class=JSONResponse)
def get_perfetto(asked: Readable, name: Name, trace: TraceName) -> JSONResponse:
    """Return all events of all trainers and PS as a file for ui.perfetto.dev."""
    found = _read(_site(asked, name, trace), name, trace)
    if not found.traces:
        raise NotFound(f"trace {trace} of {name} has no step{found.why_none()}", f"paceline describe {name}")
    headers = {"Content-Disposition": f'attachment; filename="{quote(name)}-{trace}.perfetto.json"'}
    return JSONResponse(perfetto.document(found.traces), headers=headers)


class TraceFileResponse(FileResponse):
    """A file of a trace: Parquet, or an archive of TensorFlow's output."""

    media_type = "application/octet-stream"


@router.get("/{trace}/files/{file}", operation_id="getTraceFile", response_class=TraceFileResponse)
def get_file(
    asked: Readable,
    name: Name,
    trace: TraceName,
    file: Annotated[str, InPath(description="as lists say it", max_length=100)],
) -> TraceFileResponse:
    """Return the trace of one trainer as it was written: Parquet, or an archive of what TensorFlow gave."""
    for path in sources.files(_site(asked, name, trace).run, trace):
        if path.name == file:
            return TraceFileResponse(path, media_type=TraceFileResponse.media_type, filename=file)
    raise NotFound(f"trace {trace} of {name} has no file {file!r}", f"paceline trace {name} --last")


def _site(asked: CallerRequest, name: str, trace: str) -> TraceSite:
    site = asked.jobs.trace_site(asked.jobs.get(name))
    site.fetch(trace)
    if not sources.files(site.run, trace):
        raise NotFound(f"{name} has no trace {trace}, or not yet", f"paceline trace {name}")
    return site


def _read(site: TraceSite, name: str, trace: str) -> sources.TraceReading:
    if sum(each["bytes"] for each in _files(site, trace)) > MOST_READ_BYTES:
        raise Conflict(
            f"trace {trace} of {name} is too large to be read on the server",
            f"bring its files: paceline trace {name} --last",
        )
    return sources.read(site.run, trace)
