"""The page that compares runs side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse

from paceline.diagnosing import catalogues
from paceline.model.jobs.run_queries import RunQuery
from paceline.services.studying import run_comparisons
from paceline.services.studying.run_comparisons import MOST_RUNS, RunComparison, Side
from paceline.surfaces.charts.strips import Strip
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.pages import rendering

router = APIRouter(include_in_schema=False, prefix="/compare")
#: How many jobs can be chosen from.
MOST_SHOWN = 50
#: The two lines of a diff that name the files.
_HEAD = 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunDifference:
    """A cause or a fact of the compared runs, with each run's value in its column.

    Attributes:
        is_same: whether all runs have the same value.
    """

    name: str
    severity: str
    title: str
    values: tuple[str, ...]
    is_same: bool


@router.get("")
def show(
    request: Request,
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.GET))],
    listing: Annotated[CallerRequest, Depends(may(ApiOperation.LIST))],
    job: Annotated[list[str], Query()] = [],  # noqa: B006
    search: Annotated[str, Query(max_length=200)] = "",
) -> HTMLResponse:
    """Show jobs side by side, and others to choose from."""
    names = list(dict.fromkeys(job))
    chosen = names[:MOST_RUNS]
    comparison = run_comparisons.compared(asked.jobs, asked.look_cache, chosen) if len(chosen) > 1 else None
    page = listing.jobs.page(RunQuery(search=search, limit=MOST_SHOWN))
    return rendering.page(
        request,
        "compare.html",
        names=chosen,
        left_out=len(names) - len(chosen),
        most=MOST_RUNS,
        found=comparison,
        speeds=Strip.of([end for side in comparison.sides for end in side.speed or ()])
        if comparison
        else None,
        times=Strip.of([end for side in comparison.sides for end in side.times or ()], is_logarithmic=True)
        if comparison
        else None,
        diffs=[(side.run.name, side.diff.splitlines()[_HEAD:]) for side in comparison.sides[1:]]
        if comparison
        else [],
        causes=_causes(comparison) if comparison else [],
        facts=_facts(comparison.sides) if comparison else [],
        runs=page.runs,
        search=search,
    )


def _causes(found: RunComparison) -> list[RunDifference]:
    """Return the causes found in any of the runs; causes that not all of them have come first."""
    names = dict.fromkeys(cause.name for side in found.sides for cause in side.causes)
    rows = []
    for name in names:
        topic = catalogues.topic(name)
        said = tuple(
            next((cause.what for cause in side.causes if cause.name == name), "") for side in found.sides
        )
        rows.append(
            RunDifference(
                name=topic.code, severity=str(topic.severity), title=topic.title, values=said,
                is_same=all(said),
            )
        )  # fmt: skip
    return sorted(rows, key=lambda each: each.is_same)


def _facts(sides: Sequence[Side]) -> list[RunDifference]:
    names = dict.fromkeys(name for side in sides for name in side.facts)
    rows: list[Any] = []
    for name in names:
        values = tuple(side.facts.get(name, "") for side in sides)
        is_same = len(set(values)) == 1
        rows.append(RunDifference(name=name, severity="", title="", values=values, is_same=is_same))
    return sorted(rows, key=lambda each: each.is_same)
