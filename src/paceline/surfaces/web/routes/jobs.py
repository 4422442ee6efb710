"""Jobs: submitted, listed, shown, stopped, resumed, scaled, resized, removed."""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse

from paceline import specs
from paceline.control import resizings
from paceline.errors import Conflict, InvalidInput, NotFound
from paceline.model import quantities
from paceline.model.jobs import selectors
from paceline.model.jobs.run_queries import Cursor, RunQuery
from paceline.model.jobs.runs import Run, RunSummary
from paceline.model.jobs.runs import Submit as SubmitKey
from paceline.model.jobs.selectors import Requirement, Selector
from paceline.model.roles import ReplicaId
from paceline.specs.yaml_text import problems
from paceline.surfaces import documents
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.problems import Findings
from paceline.surfaces.web.schemas import runs as schemas

router = APIRouter(prefix="/jobs", tags=["jobs"])
_LARGEST = 2**63 - 1
#: Removing a job takes some ten milliseconds, and more if it has many checkpoints.
MOST_PRUNED = 100
#: Any text is looked up: a cluster allows names that jobs on this machine cannot have.
Name = Annotated[str, Path(description="of the job", max_length=253)]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="chosen by the caller: the same submit with the same key makes one job",
        min_length=1,
        max_length=200,
    ),
]


def replica(text: str) -> ReplicaId:
    """Return the replica that a request names.

    Raises:
        InvalidInput: the text names no replica.
    """
    try:
        return ReplicaId.parse(text)
    except ValueError as error:
        raise InvalidInput(f"{problems.shown(text)} is no replica", "such as ps-0") from error


@router.get("", operation_id="listJobs", response_model=schemas.RunList)
def list_jobs(
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.LIST))],
    wanted: Annotated[schemas.RunListQuery, Query()],
) -> dict[str, Any]:
    """Return a page of the jobs; the newest first unless another order is asked for."""
    return listed(asked, wanted)


def listed(asked: CallerRequest, asked_for: schemas.RunListQuery) -> dict[str, Any]:
    """Return a page of the jobs.

    Raises:
        InvalidInput: a selector is wrong, or the cursor at which the page begins.
    """
    try:
        query = RunQuery(
            phases=tuple(asked_for.phase) or None,
            search=asked_for.search,
            model=asked_for.model,
            finding=asked_for.finding.upper(),
            selector=Selector(tuple(_requirements(asked_for.label))),
            since=asked_for.since,
            until=asked_for.until,
            order=asked_for.sort,
            descending=asked_for.descending,
            limit=asked_for.limit,
            after=None if asked_for.after is None else Cursor.parse(asked_for.after),
        )
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    page = asked.jobs.page(query)
    items = [documents.run_summary(run, lost=_is_lost(asked, run)) for run in page.runs]
    after = None if page.after is None else str(page.after)
    return documents.document("RunList", {"items": items, "total": page.total, "after": after})


def _requirements(texts: list[str]) -> list[Requirement]:
    return [each for text in texts for each in selectors.parse(text).requirements]


def _is_lost(asked: CallerRequest, run: RunSummary) -> bool:
    try:
        return not run.phase.is_final and asked.jobs.is_lost(run)
    except NotFound:  # It was deleted since the list was read.
        return False


@router.post("", operation_id="submitJob", response_model=schemas.Run, status_code=201)
def submit_job(
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.SUBMIT))],
    body: schemas.Submit,
    request: Request,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> dict[str, Any]:
    """Start a job and return at once.

    With an ``Idempotency-Key`` it may be asked for again, after a connection that broke, say: the job is
    started once, and the answer is the same.
    """
    run = submitted(asked, body, idempotency_key)
    response.headers["Location"] = address(request, run.name)
    return _document(asked, run)


def address(request: Request, name: str) -> str:
    """Return the address of a job that a request has made, with the namespace if the query names one."""
    namespace = request.query_params.get("namespace")
    return f"/api/v1/jobs/{name}" + (f"?namespace={namespace}" if namespace else "")


def submitted(asked: CallerRequest, body: schemas.Submit, idempotency_key: str | None = None) -> Run:
    """Start a job.

    Raises:
        Findings: lint reports findings at or above ``fail_on``.
        InvalidInput: the job file is wrong.
        EngineError: there is no room for the job.
    """
    job_file = asked.job_files.read(body.source)
    found = job_file.findings
    bad = [each for each in found if body.fail_on and each.severity.rank >= body.fail_on.rank]
    if bad:
        raise Findings(f"{len(bad)} of {len(found)} findings are {body.fail_on} or worse", found)
    base = asked.site.base(body.base)
    name = body.name or job_file.spec.name
    asked.note(name, body.source)
    run = asked.jobs.submit(
        job_file.spec,
        source=job_file.text,
        base=base,
        name=body.name,
        submit=_key(asked, body, idempotency_key),
    )
    if run.name != name:  # Only now its name is known.
        asked.note(run.name, f"submitted as {name}")
    return run


def _key(asked: CallerRequest, body: schemas.Submit, key: str | None) -> SubmitKey | None:
    """Return the key by which a repeated submit is recognised; each caller has separate keys."""
    if key is None:
        return None
    whole = json.dumps([asked.namespace, body.model_dump(mode="json")], sort_keys=True)
    return SubmitKey(
        key=json.dumps([asked.caller.name, key]), fingerprint=hashlib.sha256(whole.encode()).hexdigest()
    )


def _document(asked: CallerRequest, run: Run) -> dict[str, Any]:
    return documents.run_document(
        run,
        asked.jobs.replicas(run.name),
        lost=asked.jobs.is_lost(run),
        supervisor_pids=asked.jobs.supervisor_pids(run),
    )


@router.get("/{name}", operation_id="getJob", response_model=schemas.Run)
def get_job(asked: Annotated[CallerRequest, Depends(may(ApiOperation.GET))], name: Name) -> dict[str, Any]:
    """Return a job and its replicas."""
    return _document(asked, asked.jobs.get(name))


@router.get("/{name}/source", operation_id="getJobFile", response_class=PlainTextResponse)
def get_source(
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.GET))], name: Name
) -> PlainTextResponse:
    """Return the job file, as it was submitted."""
    return PlainTextResponse(specs.source_of(asked.jobs.get(name)))


@router.get("/{name}/events", operation_id="listEvents", response_model=schemas.EventList)
def list_events(
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.GET))],
    name: Name,
    since_id: Annotated[int, Query(description="only those with a higher number", ge=0, le=_LARGEST)] = 0,
) -> dict[str, Any]:
    """Return what happened to a job, the oldest first."""
    found = asked.jobs.events(name, since_id=since_id)
    items = [{"id": number, **documents.plain(each)} for number, each in found]
    return documents.document("EventList", {"items": items})


@router.post("/{name}/stop", operation_id="stopJob", response_model=schemas.Run, status_code=202)
def stop_job(asked: Annotated[CallerRequest, Depends(may(ApiOperation.STOP))], name: Name) -> dict[str, Any]:
    """Ask a job to end; it can be resumed."""
    asked.note(name)
    asked.jobs.stop(name)
    return _document(asked, asked.jobs.get(name))


@router.post("/{name}/resume", operation_id="resumeJob", response_model=schemas.Run, status_code=202)
def resume_job(
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.RESUME))], name: Name
) -> dict[str, Any]:
    """Bring back a job that was stopped, has failed or is lost, from its last checkpoint."""
    asked.note(name)
    asked.jobs.resume(name)
    return _document(asked, asked.jobs.get(name))


@router.post("/{name}/scale", operation_id="scaleJob", response_model=schemas.Run, status_code=202)
def scale_job(
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.SCALE))], name: Name, body: schemas.Scale
) -> dict[str, Any]:
    """Ask for another number of workers in a job that runs."""
    asked.note(name, f"workers: {body.workers}")
    asked.jobs.scale(name, body.workers)
    return _document(asked, asked.jobs.get(name))


@router.post("/{name}/resize", operation_id="resizeJob", response_model=schemas.Run, status_code=202)
def resize_job(
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.RESIZE))], name: Name, body: schemas.Resize
) -> dict[str, Any]:
    """Give replicas of a job that runs other cores or memory; none of them restarts."""
    resize = resizings.asked(body.target, cpu_cores=body.cpu_cores, memory_bytes=body.memory_bytes)
    span = "" if body.seconds is None else f" for {quantities.format_seconds(body.seconds)}"
    asked.note(name, resizings.sentence(resize) + span)
    asked.jobs.resize(name, resize, seconds=body.seconds)
    return _document(asked, asked.jobs.get(name))


@router.post("/prune", operation_id="pruneJobs", response_model=schemas.PruneList)
def prune_jobs(
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.DELETE))], body: schemas.Prune
) -> dict[str, Any]:
    """Remove jobs that ended some time ago, a hundred at once; with ``dry_run`` only say which."""
    names = asked.jobs.prune(older_than_seconds=body.older_than_seconds, dry_run=True)
    chosen = names[:MOST_PRUNED]
    for name in () if body.dry_run else chosen:
        asked.note(name, f"ended {body.older_than_seconds:g} s ago or earlier")
        with contextlib.suppress(NotFound, Conflict):  # The job was deleted, or resumed, meanwhile.
            asked.jobs.delete(name)
    found = {"names": chosen, "left": len(names) - len(chosen), "dry_run": body.dry_run}
    return documents.document("PruneList", found)


@router.delete("/{name}", operation_id="deleteJob", status_code=204)
def delete_job(
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.DELETE))],
    name: Name,
    force: Annotated[bool, Query(description="stop it first if it has not ended")] = False,
) -> None:
    """Remove a job with its logs, samples and checkpoints."""
    asked.note(name, "with --force" if force else "")
    asked.jobs.delete(name, force=force)
