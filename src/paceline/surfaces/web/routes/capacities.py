"""The capacity where jobs run, the jobs that hold it, and whether another job fits."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from paceline.diagnosing import catalogues
from paceline.model.jobs.nodes import Node, Resources
from paceline.services.observing import capacities
from paceline.services.observing.capacities import NodeHolding, WaitingJob
from paceline.surfaces import documents
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.schemas import capacities as schemas
from paceline.surfaces.web.schemas.checks import JobFile

router = APIRouter(tags=["cluster"])
Looking = Annotated[CallerRequest, Depends(may(ApiOperation.CLUSTER))]


@router.get("/cluster", operation_id="getCluster", response_model=schemas.Capacity)
def get_cluster(asked: Looking) -> dict[str, Any]:
    """Return the nodes, or this machine, what jobs hold of them, and which jobs wait for what.

    Of jobs only who may list them is told.
    """
    found = capacities.capacity(asked.jobs, asked.look_cache, with_jobs=asked.may(ApiOperation.LIST))
    return documents.document(
        "Capacity",
        {
            "nodes": [_node(each) for each in found.nodes],
            "holdings": [_holding(each) for each in found.holdings],
            "waiting": [_waiting(each) for each in found.waiting],
            "left_out": found.left_out,
        },
    )


@router.post("/fit", operation_id="fitJobFile", response_model=schemas.Fit)
def fit(asked: Looking, body: JobFile) -> dict[str, Any]:
    """Return whether all of a job fits now; if not, how many workers would, and what blocks the others."""
    spec = asked.job_files.spec(body.source)
    return documents.document("Fit", documents.fit(spec, asked.jobs.fit(spec)))


def _amounts(found: Resources) -> dict[str, Any]:
    return {
        "cores": found.millicores / 1000,
        "memory_bytes": found.memory_bytes,
        "gpus": found.gpus,
        "pods": found.pods,
    }


def _node(node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "is_ready": node.is_ready,
        "is_cordoned": node.is_cordoned,
        "has": _amounts(node.allocatable),
        "taken": _amounts(node.used),
        "taints": [str(each) for each in node.taints],
    }


def _holding(holding: NodeHolding) -> dict[str, Any]:
    return {**documents.plain(holding), "asked": _amounts(holding.asked)}


def _waiting(waiting: WaitingJob) -> dict[str, Any]:
    cause = waiting.cause
    return {
        "job": waiting.job,
        "since": documents.instant(waiting.since),
        "priority": waiting.priority,
        "asked": _amounts(waiting.asked),
        "code": None if cause is None else catalogues.topic(cause.name).code,
        "severity": None if cause is None else cause.severity.value,
        "why": waiting.message if cause is None else cause.what,
    }
