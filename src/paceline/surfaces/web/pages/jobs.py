"""The page of all jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse

from paceline.errors import InvalidInput
from paceline.model.jobs.run_queries import Order
from paceline.model.jobs.statuses import JobPhase
from paceline.surfaces.charts import strips
from paceline.surfaces.views import cells
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.pages import rendering
from paceline.surfaces.web.routes import jobs as routes
from paceline.surfaces.web.schemas.runs import RunListQuery

router = APIRouter(include_in_schema=False)


@router.get("/")
def list_jobs(
    request: Request,
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.LIST))],
    search: Annotated[str, Query(max_length=200)] = "",
    label: Annotated[str, Query(max_length=500)] = "",
    phase: str = "",
    sort: Order = Order.SUBMITTED,
    descending: bool = True,
    after: str = "",
    part: bool = False,
) -> HTMLResponse:
    """Show the jobs, or the part of the page that changes."""
    chosen = {
        "search": search, "label": label, "phase": phase, "sort": sort.value,
        "descending": str(descending).lower(),
    }  # fmt: skip
    complaint = ""
    run_list: dict[str, Any] = {"items": [], "total": 0, "after": None}
    try:
        run_list = routes.listed(
            asked,
            RunListQuery(
                search=search,
                label=[label] if label else [],
                phase=[JobPhase(phase)] if phase else [],
                sort=sort,
                descending=descending,
                after=after or None,
            ),
        )
    except (InvalidInput, ValueError) as error:
        complaint = str(error)

    def link(**changes: Any) -> str:
        return "/?" + urlencode({name: value for name, value in {**chosen, **changes}.items() if value})

    return rendering.page(
        request,
        "job_rows.html" if part else "jobs.html",
        chosen=chosen,
        complaint=complaint,
        rows=[_row(run) for run in run_list["items"]],
        total=run_list["total"],
        next_link=link(after=run_list["after"]) if run_list["after"] else "",
        link=link,
        after=after,
        orders=Order,
        phases=tuple(JobPhase),
    )


def _row(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job as its row shows it; an en dash stands for a value that was not measured."""
    summary = item["diagnosis"] or {}
    eta = summary.get("eta_seconds")
    return {
        **{name: item[name] for name in ("name", "labels", "phase", "replicas")},
        "progress": _or_dash(summary.get("progress"), cells.percent),
        "eta": "" if eta is None else cells.duration(eta),
        "speed": _or_dash(summary.get("examples_per_second"), cells.number),
        "spark": strips.spark(summary.get("trend", ())),
        "imbalance": _or_dash(summary.get("imbalance"), "{:.2f}".format),
        "code": summary.get("code"),
        "severity": summary.get("severity"),
        "finding": summary.get("finding"),
        "submitted": item["submitted_at"][:16].replace("T", " "),
    }


def _or_dash(value: float | None, shown: Callable[[float], str]) -> str:
    return "\N{EN DASH}" if value is None else shown(value)
