"""Changes to the job file of a job: previewed, made, undone, and their effect."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from paceline import specs
from paceline.errors import Conflict, InvalidInput
from paceline.model.explanations import causes
from paceline.model.jobs.runs import KUBERNETES, Run
from paceline.model.jobs.statuses import JobPhase
from paceline.services.studying import changes
from paceline.services.studying.changes import Changed
from paceline.surfaces import documents
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.routes.jobs import Name
from paceline.surfaces.web.schemas import runs as schemas

router = APIRouter(prefix="/jobs/{name}", tags=["changes"])
Changing = Annotated[CallerRequest, Depends(may(ApiOperation.APPLY))]


@router.post("/change", operation_id="changeJob", response_model=schemas.ChangeAsked, status_code=202)
def change(asked: Changing, name: Name, body: schemas.Change) -> dict[str, Any]:
    """Let a job go on from its last checkpoint with another job file; it ends and begins anew for that.

    What runs stays the same: commands and code. With ``dry_run`` only what would change is said.
    """
    source = specs.source_of(asked.jobs.get(name))
    if bool(body.edits) is (body.source is not None):
        raise InvalidInput(
            "a change needs either `edits` of the job file or a whole job file as `source`",
            "send exactly one of the two",
        )
    if body.source is not None:
        wanted = asked.job_files.read(body.source).text
    else:
        edits = [causes.FieldChange(path=tuple(each.path), value=each.value) for each in body.edits]
        wanted = asked.job_files.edited(source, edits)
    return made(asked, name, source, wanted, dry_run=body.dry_run)


@router.post("/undo", operation_id="undoChange", response_model=schemas.ChangeAsked, status_code=202)
def undo(asked: Changing, name: Name) -> dict[str, Any]:
    """Let a job go on from its last checkpoint with the job file that it had before its last change."""
    run = asked.jobs.get(name)
    found = [each.change for each in changes.changes(asked.jobs, name) if each.change.done_at is not None]
    if not found:
        raise Conflict(f"{name} was not changed", f"paceline get {name}")
    return made(asked, name, specs.source_of(run), found[-1].before, dry_run=False)


@router.get("/changes", operation_id="listChanges", response_model=schemas.ChangedList)
def list_changes(
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.GET))], name: Name
) -> dict[str, Any]:
    """Return the changes of a job that ran, and how fast it was before and after each."""
    items = [_item(asked, each) for each in changes.changes(asked.jobs, name)]
    return documents.document("ChangeList", {"items": items})


def can_go_on(run: Run) -> bool:
    """Whether a job can go on with another file; on this machine, only a job begun with a job file can."""
    return run.phase is not JobPhase.SUCCEEDED and (bool(run.source) or run.engine == KUBERNETES)


def made(asked: CallerRequest, name: str, source: str, wanted: str, *, dry_run: bool) -> dict[str, Any]:
    """Ask a job to go on with another file; return the difference.

    Raises:
        Conflict: the job cannot go on with another file.
        InvalidInput: the file is wrong, or changes what the job runs.
    """
    diff = asked.job_files.difference(source, wanted)
    if not dry_run:
        asked.note(name, diff)
        asked.jobs.change(name, wanted)
    return documents.document("Change", {"name": name, "diff": diff, "dry_run": dry_run})


def _item(asked: CallerRequest, each: Changed) -> dict[str, Any]:
    judgement = each.judgement
    return {
        **documents.plain(each.change),
        "diff": asked.job_files.difference(each.change.before, each.change.source),
        "before_examples_per_second": each.before,
        "after_examples_per_second": each.after,
        "gained": judgement
        and {
            "times": judgement.times,
            "low": judgement.low,
            "high": judgement.high,
            "verdict": judgement.why,
        },
    }
