"""The page of one job: why it is in its state, how its replicas do, what happened, what it prints."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, Response
from starlette.concurrency import run_in_threadpool

from paceline import specs
from paceline.diagnosing import catalogues
from paceline.errors import Conflict
from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import JobPhase
from paceline.services.studying import changes
from paceline.sources import traces
from paceline.surfaces import answers, scripts
from paceline.surfaces.charts import elasticities, steps
from paceline.surfaces.diffs import Diffs
from paceline.surfaces.reports import evidence, pages
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.pages import log_folders, rendering, timelines
from paceline.surfaces.web.pages.forms import Fields
from paceline.surfaces.web.routes import changes as change_routes
from paceline.surfaces.web.routes import jobs as routes
from paceline.surfaces.web.routes import logs as log_routes
from paceline.surfaces.web.routes import probes as probe_routes
from paceline.surfaces.web.routes.jobs import Name
from paceline.surfaces.web.schemas.logs import LogQuery
from paceline.surfaces.web.schemas.probes import ProbeWanted

router = APIRouter(include_in_schema=False, prefix="/jobs/{name}")
Readable = Annotated[CallerRequest, Depends(may(ApiOperation.GET))]


@router.get("")
def show(request: Request, asked: Readable, name: Name) -> HTMLResponse:
    """Show a job."""
    known = _now(asked, name)
    run: Run = known["run"]
    return rendering.page(
        request, "job.html", source=specs.source_of(run), log_folders=log_folders.named(run.spec), **known
    )


@router.get("/now")
def show_now(request: Request, asked: Readable, name: Name) -> HTMLResponse:
    """Show the part of the page that changes."""
    return rendering.page(request, "job_now.html", **_now(asked, name))


def _now(asked: CallerRequest, name: str) -> dict[str, Any]:
    run = asked.jobs.get(name)
    found = asked.look_cache.look(run).explanation
    return {
        "run": run,
        "snapshot": asked.look_cache.snapshot(run),
        "answer": answers.answer(found, diffs=Diffs.of(run)),
        "may_apply": change_routes.can_go_on(run),
        "changes": changes.changes(asked.jobs, name)[::-1],
        "is_lost": not run.phase.is_final and asked.jobs.is_lost(run),
    }


@router.get("/replicas")
def show_replicas(request: Request, asked: Readable, name: Name) -> HTMLResponse:
    """Show how each replica does, as numbers."""
    snapshot = asked.look_cache.snapshot(asked.jobs.get(name))
    return rendering.page(request, "job_replicas.html", snapshot=snapshot)


@router.get("/timeline")
def show_timeline(request: Request, asked: Readable, name: Name) -> HTMLResponse:
    """Show what happened and what was found, the latest first."""
    events = scripts.others(event for _, event in asked.jobs.events(name))
    found = timelines.entries(
        asked.look_cache.look(asked.jobs.get(name)), events, asked.jobs.spec_changes(name)
    )
    return rendering.page(request, "job_timeline.html", entries=found)


@router.get("/steps")
def show_steps(request: Request, asked: Readable, name: Name) -> HTMLResponse:
    """Show what a step moves and where its time goes, as far as that was traced or counted, and what is seen
    and changed of scripts at all.
    """
    run = asked.jobs.get(name)
    recording = asked.look_cache.look(run).recording
    newest = max((trace.at for trace in recording.traces), default=None)
    return rendering.page(
        request,
        "job_steps.html",
        run=run,
        seen=scripts.seen(run.spec, asked.jobs.replicas(name), recording.events),
        changed=scripts.changed(run.spec, recording.events),
        traffic=steps.traffic(recording),
        splits=steps.splits(recording),
        newest=_newest_trace(asked, name) if newest is not None else None,
    )


@router.get("/probe")
def show_probe(request: Request, asked: Readable, name: Name) -> HTMLResponse:
    """Show what the newest probe of the job has found, and how far one is that goes on."""
    run = asked.jobs.get(name)
    found = asked.jobs.probes(name)
    newest = found[-1] if found else None
    goes_on = newest is not None and newest.ended is None and not run.phase.is_final
    return rendering.page(
        request,
        "job_probe.html",
        run=run,
        picture=elasticities.picture(found),
        doing=f"{len(newest.cuts)} cuts made" if newest is not None and goes_on else "",
        may_probe=run.phase is JobPhase.RUNNING and not goes_on,
    )


@router.post("/probe")
async def probe(
    request: Request, asked: Annotated[CallerRequest, Depends(may(ApiOperation.PROBE))], name: Name
) -> HTMLResponse:
    """Begin to probe the job, and show it."""
    await probe_routes.start_probe(request, asked, name, ProbeWanted())
    return await run_in_threadpool(show_probe, request, asked, name)


def _newest_trace(asked: CallerRequest, name: str) -> str | None:
    found = traces.names(asked.jobs.trace_site(asked.jobs.get(name)).run)
    return found[-1] if found else None


@router.get("/report")
def send_report(asked: Readable, name: Name) -> Response:
    """Send the page about the job that needs nothing else (``paceline report``).

    It has the last output of failed replicas only for a caller who may read output.
    """
    asked.jobs.get(name)
    found = evidence.gather(asked.jobs, name, with_logs=asked.may(ApiOperation.LOGS))
    headers = {"Content-Disposition": f'attachment; filename="{quote(name)}-report.html"'}
    return HTMLResponse(pages.page(found), headers=headers)


@router.get("/logs")
def show_logs(
    request: Request,
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.LOGS))],
    name: Name,
    replica: str = "",
    search: Annotated[str, Query(max_length=200)] = "",
) -> HTMLResponse:
    """Show what replicas have printed last."""
    chosen = routes.replica(replica) if replica else None
    query = LogQuery(
        role=chosen.role if chosen else None, index=chosen.index if chosen else None, search=search, tail=500
    )
    found = log_routes.listed(asked, name, query)
    return rendering.page(request, "job_logs.html", found=found, with_replica=not replica)


@router.post("/apply")
def apply(
    request: Request,
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.APPLY))],
    name: Name,
    fields: Fields,
) -> HTMLResponse:
    """Let the job go on with what a cause proposes, and show it."""
    run = asked.jobs.get(name)
    code, found = fields.get("cause", ""), asked.look_cache.look(run).explanation.causes
    cause = next((each for each in found if catalogues.topic(each.name).code == code), None)
    if cause is None or not cause.changes:
        raise Conflict(f"{code} is not there any more, or proposes nothing", f"paceline why {name}")
    source = specs.source_of(run)
    change_routes.made(asked, name, source, asked.job_files.edited(source, cause.changes), dry_run=False)
    return show_now(request, asked, name)


@router.post("/undo")
def undo(
    request: Request, asked: Annotated[CallerRequest, Depends(may(ApiOperation.APPLY))], name: Name
) -> HTMLResponse:
    """Let the job go on as it was before its last change, and show it."""
    change_routes.undo(asked, name)
    return show_now(request, asked, name)


@router.post("/stop")
def stop(
    request: Request, asked: Annotated[CallerRequest, Depends(may(ApiOperation.STOP))], name: Name
) -> HTMLResponse:
    """Ask the job to end, and show it."""
    routes.stop_job(asked, name)
    return show_now(request, asked, name)


@router.post("/resume")
def resume(
    request: Request, asked: Annotated[CallerRequest, Depends(may(ApiOperation.RESUME))], name: Name
) -> HTMLResponse:
    """Bring the job back, and show it."""
    routes.resume_job(asked, name)
    return show_now(request, asked, name)


@router.post("/delete")
def delete(asked: Annotated[CallerRequest, Depends(may(ApiOperation.DELETE))], name: Name) -> Response:
    """Remove the job, and go to the others."""
    routes.delete_job(asked, name)
    return Response(status_code=204, headers={"HX-Redirect": "/"})
