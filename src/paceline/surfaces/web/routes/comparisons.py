"""Comparison of runs side by side."""

from __future__ import annotations

import math
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from paceline.diagnosing import catalogues
from paceline.services.studying import run_comparisons
from paceline.services.studying.run_comparisons import MOST_RUNS, Range, Side
from paceline.surfaces import documents
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.schemas import comparisons as schemas

router = APIRouter(prefix="/compare", tags=["comparisons"])
Names = Annotated[
    list[str],
    Query(
        alias="job",
        description="the names of jobs; the others are compared with the first",
        min_length=1,
        max_length=MOST_RUNS,
    ),
]


@router.get("", operation_id="compareJobs", response_model=schemas.RunComparison)
def compare(asked: Annotated[CallerRequest, Depends(may(ApiOperation.GET))], names: Names) -> dict[str, Any]:
    """Return jobs side by side: how fast each is, how well it learns, and what else differs."""
    found = run_comparisons.compared(asked.jobs, asked.look_cache, names)
    return documents.document(
        "RunComparison", {"examples": found.examples, "items": [_side(each) for each in found.sides]}
    )


def _side(side: Side) -> dict[str, Any]:
    run = side.run
    return {
        "name": run.name,
        "phase": run.phase.value,
        "seconds": side.seconds,
        "examples_per_second": _range(side.speed),
        "times": _range(side.times),
        "verdict": side.verdict.value,
        "learning": side.learning,
        "loss": _finite(side.loss),
        "loss_alike": _finite(side.loss_alike),
        "auc": _finite(side.auc),
        "asked_cores": side.asked_cores,
        "used_cores": side.used_cores,
        "causes": [
            {
                "code": catalogues.topic(each.name).code,
                "name": each.name,
                "what": each.what,
                "severity": each.severity.value,
            }
            for each in side.causes
        ],
        "diff": side.diff,
        "facts": side.facts,
    }


def _finite(value: float | None) -> float | None:
    """Return a number that JSON can represent, or None: a loss may be NaN."""
    return value if value is None or math.isfinite(value) else None


def _range(found: Range | None) -> dict[str, float] | None:
    return None if found is None else dict(zip(("middle", "low", "high"), found, strict=True))
