"""The pages of possible changes to a job: proposals, and the effect of a shape that the user chooses."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool

from paceline.errors import InvalidInput, PacelineError
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.job_specs import CpuPolicy
from paceline.model.jobs.runs import Run
from paceline.model.roles import Role
from paceline.model.studies.proposals import Proposal
from paceline.modelling.predictions import NOTHING_BINDS
from paceline.services.studying import what_ifs
from paceline.services.studying.computation_cache import Advisor
from paceline.services.studying.predictions import SpeedModel
from paceline.services.studying.what_ifs import WhatIf
from paceline.surfaces import answers, documents
from paceline.surfaces.charts import curves
from paceline.surfaces.charts.curves import CurveValue
from paceline.surfaces.charts.drawings import Chart
from paceline.surfaces.charts.strips import Strip
from paceline.surfaces.diffs import Diffs
from paceline.surfaces.reports import texts
from paceline.surfaces.views import forecasts as views
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.pages import rendering
from paceline.surfaces.web.pages.forms import Fields
from paceline.surfaces.web.routes import advice
from paceline.surfaces.web.routes import changes as routes
from paceline.surfaces.web.routes.jobs import Name
from paceline.surfaces.web.schemas.runs import Change as ChangeBody
from paceline.surfaces.web.schemas.runs import Edit

router = APIRouter(include_in_schema=False, prefix="/jobs/{name}")
Readable = Annotated[CallerRequest, Depends(may(ApiOperation.GET))]
_EDITS = TypeAdapter(list[Edit])
MOST_REPLICAS, MOST_CORES = 1024, 4096.0
#: The steps of a slider, in thousandths of a core.
_STEPS = (1, 2, 5, 10, 20, 25, 50, 100, 125, 250, 500, 1000)


class Chosen(BaseModel):
    """A shape that the user asks about; None: the present value. ``over`` is the field the curve varies."""

    servers: Annotated[int | None, Field(ge=1, le=MOST_REPLICAS)] = None
    workers: Annotated[int | None, Field(ge=1, le=MOST_REPLICAS)] = None
    server_cores: Annotated[float | None, Field(gt=0, le=MOST_CORES)] = None
    worker_cores: Annotated[float | None, Field(gt=0, le=MOST_CORES)] = None
    even: bool | None = None
    over: Annotated[str, Field(max_length=20)] = what_ifs.FIELDS[0]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slider:
    """A number that the user can choose."""

    name: str
    least: float
    most: float
    step: float
    now: float
    wanted: float


@router.get("/proposals")
def show_proposals(request: Request, asked: Readable, name: Name) -> HTMLResponse:
    """Show what could be changed, or that this is being computed."""
    run = asked.jobs.get(name)
    coming = _advisor(request).proposals(asked.namespace, run, asked.look_cache)
    diffs = Diffs.of(run)
    found = [_row(each, diffs) for each in coming.result()] if coming.done() else None
    may_apply = routes.can_go_on(run)
    ends = [end for each in found or () for end in each["ends"] or ()]
    return rendering.page(
        request,
        "proposals.html",
        name=name,
        found=found,
        unknown=_unknown(asked, run) if found == [] else "",
        may_apply=may_apply,
        strip=Strip.of(ends, is_logarithmic=True),
    )


def _unknown(asked: CallerRequest, run: Run) -> str:
    """Return, as a sentence, which data proposals still need; empty: there is enough."""
    from paceline.services.studying import proposals

    why = proposals.none_known(asked.look_cache.look(run).recording)
    return "" if why == proposals.NOTHING else f"{why[:1].upper()}{why[1:]}."


def _row(each: Proposal, diffs: Diffs) -> dict[str, Any]:
    return {
        "name": each.name,
        "what": each.what,
        "gain": each.gain and answers.gain(each.gain),
        "ends": each.gain and ((each.gain.low * each.gain.high) ** 0.5, each.gain.low, each.gain.high),
        "basis": each.basis,
        "risk": each.risk,
        "rows": diffs.rows(each.changes),
        "changes": _written(each.changes),
    }


def _written(changes: Sequence[FieldChange]) -> str:
    """Return changes as text for a form field, so that what is applied is what was shown."""
    return json.dumps([documents.plain(each) for each in changes])


@router.post("/proposals/apply")
def apply(
    request: Request,
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.APPLY))],
    name: Name,
    fields: Fields,
) -> Response:
    """Let the job go on with changes that were shown, and go to its page."""
    try:
        edits = _EDITS.validate_json(fields.get("changes", ""))
        body = ChangeBody(edits=edits)
    except ValidationError as error:
        raise InvalidInput("the changes cannot be read", "load the page again") from error
    routes.change(asked, name, body)
    page = f"/jobs/{quote(name, safe='')}"
    if "hx-request" in request.headers:
        return Response(status_code=204, headers={"HX-Redirect": page})
    return RedirectResponse(page, 303)


@router.get("/what-if")
async def show_what_if(
    request: Request, asked: Readable, name: Name, given: Annotated[Chosen, Query()], part: bool = False
) -> HTMLResponse:
    """Show what a shape would bring, and those beside it; or the part of the page that changes."""
    run = await run_in_threadpool(asked.jobs.get, name)
    coming = _advisor(request).model(asked.namespace, run, asked.look_cache)
    model = await advice.computed(coming)
    values = await run_in_threadpool(_what_if, model, given)
    may_apply = routes.can_go_on(run)
    return rendering.page(
        request,
        "what_if_told.html" if part else "what_if.html",
        name=name,
        may_apply=may_apply,
        diff=Diffs.of(run).rows,
        **values,
    )


def _advisor(request: Request) -> Advisor:
    found: Advisor = request.app.state.advisor
    return found


def _what_if(model: SpeedModel, given: Chosen) -> dict[str, Any]:
    now = what_ifs.shape(model)
    # A role without a CPU limit has no number of cores that could be changed.
    chosen = {
        field: value
        for field, value in given.model_dump(exclude={"over"}, exclude_none=True).items()
        if getattr(now, field) is not None
    }
    wanted_shape = dataclasses.replace(now, **chosen)
    fields = [field for field in what_ifs.FIELDS if getattr(now, field) is not None]
    over = given.over if given.over in fields else fields[0]
    what_if, complaint = None, ""
    try:
        what_if = what_ifs.what_if(model, wanted_shape, over)
    except PacelineError as error:  # For example, the shape does not fit; others may.
        complaint = error.message
    return {
        "sliders": [
            _slider(model, field, getattr(now, field), getattr(wanted_shape, field)) for field in fields
        ],
        "now": now,
        "wanted": wanted_shape,
        "over": over,
        "fields": fields,
        "found": what_if,
        "complaint": complaint,
        "changes": _written(what_if.changes) if what_if else "",
        "chart": _chart(what_if) if what_if else None,
        "nothing": NOTHING_BINDS,
        "untold": [views.COSTS[name] for name in what_if.told.untold] if what_if else [],
    }


def _slider(model: SpeedModel, field: str, now: float, wanted: float) -> Slider:
    if isinstance(now, int):
        most = max(what_ifs.LEAST_COUNT, what_ifs.MOST_TIMES * now, wanted)
        return Slider(name=field, least=1, most=most, step=1, now=now, wanted=wanted)
    role = model.job.spec.role(Role.PS if field == "server_cores" else Role.WORKER)
    is_whole = role is not None and role.cpu_policy is CpuPolicy.EXCLUSIVE
    step = 1.0 if is_whole else _step(now)
    most = max(what_ifs.MOST_TIMES * now, wanted)
    return Slider(name=field, least=step, most=most, step=step, now=now, wanted=wanted)


def _step(cores: float) -> float:
    """Return by how many cores a slider moves, so that the present value is one of its positions."""
    millicores = round(cores * 1000)
    return (
        max(each for each in _STEPS if millicores % each == 0 and (4 * each <= millicores or each == 1))
        / 1000
    )


def _chart(found: WhatIf) -> Chart:
    places = [
        CurveValue(
            label=f"{each.value:g}",
            middle=each.forecast.then_examples_per_second,
            low=each.forecast.examples_per_second * each.forecast.low,
            high=each.forecast.examples_per_second * each.forecast.high,
            kind=each.forecast.then.binds or NOTHING_BINDS,
        )
        for each in found.points
    ]
    values = [each.value for each in found.points]
    marks = {"knee": found.knee, "chosen": getattr(found.wanted, found.field)}
    return curves.curve(
        found.field,
        places,
        across=found.field,
        up="Examples per second",
        level=found.told.examples_per_second,
        marks={name: values.index(value) for name, value in marks.items() if value in values},
        shown=texts.whole,
    )
