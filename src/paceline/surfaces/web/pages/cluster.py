"""The page of the capacity where jobs run: nodes, running and waiting jobs, and whether a job would fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from paceline import specs
from paceline.diagnosing import catalogues
from paceline.errors import PacelineError
from paceline.model.jobs.nodes import Node, Resources
from paceline.model.jobs.quotas import QuotaUses
from paceline.model.jobs.run_queries import RunQuery
from paceline.model.jobs.runs import LOCAL
from paceline.services.observing import capacities
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.pages import rendering
from paceline.surfaces.web.pages.forms import Fields

router = APIRouter(include_in_schema=False, prefix="/cluster")
Looking = Annotated[CallerRequest, Depends(may(ApiOperation.CLUSTER))]
#: How many nodes are shown: the fullest ones.
MOST_NODES = 200
#: How many jobs' files can be chosen from.
MOST_FILES = 50
_NO_FIT: Mapping[str, Any] = {"fit": None, "spec": None, "free": None, "complaint": ""}


@router.get("")
@router.get("/fit")  # A browser without scripts is at this address after it has sent the form.
def show(request: Request, asked: Looking, part: bool = False) -> HTMLResponse:
    """Show what there is, or the part of the page that changes."""
    if part:
        return rendering.page(request, "cluster_now.html", **_now(asked))
    return _page(request, asked, {"source": "", "file": ""}, {})


@router.post("/fit")
def fit(request: Request, asked: Looking, fields: Fields) -> HTMLResponse:
    """Show whether the job of a file fits, beside the form or alone."""
    given = {"source": fields.get("source", "").replace("\r\n", "\n"), "file": fields.get("file", "")}
    found = _fit(asked, given)
    if "hx-request" in request.headers:
        return rendering.page(request, "fit.html", **found)
    return _page(request, asked, given, found)


def _page(
    request: Request, asked: CallerRequest, given: Mapping[str, str], found: Mapping[str, Any]
) -> HTMLResponse:
    may_choose = asked.may(ApiOperation.LIST) and asked.may(ApiOperation.GET)
    files = [run.name for run in asked.jobs.page(RunQuery(limit=MOST_FILES)).runs] if may_choose else []
    return rendering.page(
        request, "cluster.html", files=files, given=given, **_now(asked), **{**_NO_FIT, **found}
    )


def _now(asked: CallerRequest) -> dict[str, Any]:
    found = capacities.capacity(asked.jobs, asked.look_cache, with_jobs=asked.may(ApiOperation.LIST))
    nodes = sorted(found.nodes, key=lambda node: (-_fullness(node), node.name))
    return {
        "capacity": found,
        "nodes": nodes[:MOST_NODES],
        "nodes_left_out": len(nodes[MOST_NODES:]),
        "is_local": asked.site.engine == LOCAL,
        "quotas": asked.site.quotas(asked.namespace) if asked.may(ApiOperation.QUOTAS) else QuotaUses(),
        "total": sum((each.allocatable for each in found.nodes), Resources()),
        "taken": sum((each.used for each in found.nodes), Resources()),
        "topic": catalogues.topic,
    }


def _fullness(node: Node) -> float:
    has, used = node.allocatable, node.used
    shares = (
        (used.millicores, has.millicores), (used.memory_bytes, has.memory_bytes), (used.gpus, has.gpus),
    )  # fmt: skip
    return max((taken / whole for taken, whole in shares if whole), default=0.0)


def _fit(asked: CallerRequest, given: Mapping[str, str]) -> dict[str, Any]:
    """Return whether a job fits, or what is wrong with its file."""
    try:
        source = given["source"]
        if not source.strip() and given["file"] and asked.may(ApiOperation.GET):
            source = specs.source_of(asked.jobs.get(given["file"]))
        spec = asked.job_files.spec(source)
        nodes = asked.jobs.nodes()
        free = sum((each.free for each in nodes), Resources())
        return {"fit": asked.jobs.fit(spec), "spec": spec, "free": free, "complaint": ""}
    except PacelineError as error:
        return {**_NO_FIT, "complaint": error.message}
