"""What happens in a job, as it happens: server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from paceline.surfaces.web import feeds
from paceline.surfaces.web.callers import CallerRequest, Rights, may
from paceline.surfaces.web.feeds import Feeds
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.routes.jobs import Name

router = APIRouter(prefix="/jobs/{name}", tags=["streams"])
LastEventId = Annotated[
    int, Header(alias="Last-Event-ID", description="of the last event that was seen", ge=0, le=2**63 - 1)
]


def known(asked: Annotated[CallerRequest, Depends(may(ApiOperation.GET))], name: Name) -> CallerRequest:
    """Return a request to follow an existing job: a stream that has begun cannot be answered with 404."""
    asked.jobs.get(name)
    return asked


@router.get("/stream", operation_id="followJob", response_class=EventSourceResponse)
async def follow(
    request: Request,
    asked: Annotated[CallerRequest, Depends(known)],
    name: Name,
    last_event_id: LastEventId = 0,
    snapshots: Annotated[bool, Query(description="instead of summaries: all that is measured now")] = False,
) -> AsyncIterator[ServerSentEvent]:
    """Follow a job until it has ended.

    ``event``: something happened to it; its number is the event's id, so a connection that broke goes on
    behind the last one (``Last-Event-ID``). ``diagnosis``: how it does, in the numbers that a list shows,
    when that has changed; or ``snapshot``, with all replicas, where these are asked for. ``end``: nothing
    more will come. ``problem``: it cannot be followed any more, or the caller may not follow it any more:
    their rights are checked again each minute.
    """
    made: Feeds = request.app.state.feeds
    feed = made.of(asked.namespace, name, asked.jobs, asked.look_cache)
    rights = Rights(request, asked)
    async for each in feeds.followed(feed, asked.jobs, name, last_event_id, rights.check, whole=snapshots):
        yield each
