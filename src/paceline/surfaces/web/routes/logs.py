"""The output of replicas: the last lines, page by page, or as it is printed."""

from __future__ import annotations

import asyncio
import collections
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from paceline.errors import PacelineError
from paceline.model.roles import ReplicaId
from paceline.services.logs import LogLine, LogSelection, Reader
from paceline.surfaces import documents
from paceline.surfaces.web import log_cursors
from paceline.surfaces.web.callers import CallerRequest, Rights, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.problems import RequestRefused
from paceline.surfaces.web.routes.jobs import Name, replica
from paceline.surfaces.web.schemas import logs as schemas

#: The server cuts lines at this length: a line may be a printed tensor of a hundred megabytes.
LINE_CHARACTERS = 8192
#: A page ends after the line that makes it this long.
PAGE_CHARACTERS = 4 << 20
#: How many lines a follower is sent at once, and how often new lines are looked for.
BATCH_LINES, LOOK_SECONDS = 500, 1.0

router = APIRouter(prefix="/jobs/{name}", tags=["logs"])
Readable = Annotated[CallerRequest, Depends(may(ApiOperation.LOGS))]
LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        description="of the last lines that were seen: go on behind them",
        max_length=schemas.MOST_CURSOR,
    ),
]


@router.get("/logs", operation_id="listLogLines", response_model=schemas.LogPage)
def list_lines(asked: Readable, name: Name, wanted: Annotated[schemas.LogQuery, Query()]) -> dict[str, Any]:
    """Return lines that a job's replicas have printed: the last ones, or page by page.

    With ``after`` the lines are those from there on, and ``after`` of the answer is where the next page
    begins: so output can be read on as it comes, and no line is missed or there twice.
    """
    return listed(asked, name, wanted)


def listed(asked: CallerRequest, name: str, wanted: schemas.LogQuery) -> dict[str, Any]:
    """Return the requested lines.

    Raises:
        NotFound: there is no such job.
        InvalidInput: a name is no replica's, or ``after`` is not the position at which an answer ended.
    """
    goes_on, takes = wanted.after is not None, _takes(wanted)
    tail = wanted.begin if goes_on else None if wanted.search else wanted.tail
    reader = _reader(asked, name, wanted, after=wanted.after, tail=tail)
    found = _shown(reader, wanted.search, ended=wanted.unfinished)
    items = list(_page(found, wanted.limit)) if goes_on else list(collections.deque(found, wanted.tail))
    body = {
        "items": items,
        "gone": [f"{each}.{attempt}" for each, attempt in asked.jobs.gone(name) if takes(each)],
        "after": log_cursors.text(reader.positions),
        "is_full": goes_on and next(found, None) is not None,
    }
    return documents.document("LogPage", body)


def _takes(wanted: schemas.LogChoice) -> Callable[[ReplicaId], bool]:
    named = frozenset(map(replica, wanted.replica))

    def takes(each: ReplicaId) -> bool:
        is_named = not named or each in named
        return is_named and wanted.role in (None, each.role) and wanted.index in (None, each.index)

    return takes


def _reader(
    asked: CallerRequest, name: str, wanted: schemas.LogChoice, *, after: str | None, tail: int | None
) -> Reader:
    """Return a reader of lines.

    Args:
        asked: the request.
        name: the job.
        wanted: the replicas, attempts and times of the lines.
        after: the position after which the lines begin; empty or None: the beginning.
        tail: how many of the last lines of each attempt to begin with; None: all lines.

    Raises:
        NotFound: there is no such job.
        InvalidInput: a name is no replica's, or ``after`` is not the position at which an answer ended.
    """
    run = asked.jobs.get(name)
    choice = LogSelection(
        replica=_takes(wanted),
        attempt=wanted.attempt,
        tail=tail,
        since=wanted.since,
        behind=log_cursors.parse(after) if after else None,
    )
    return asked.jobs.log_reader(run, choice)


def _shown(reader: Reader, search: str, *, ended: bool) -> Iterator[dict[str, Any]]:
    text = search.lower()
    for line in reader.fresh(ended=ended):
        if not text or text in line.text.lower():
            yield _item(line)


def _item(line: LogLine) -> dict[str, Any]:
    return {
        "replica": str(line.replica),
        "attempt": line.attempt,
        "text": line.text[:LINE_CHARACTERS],
        "is_cut": len(line.text) > LINE_CHARACTERS,
    }


def _page(found: Iterable[dict[str, Any]], limit: int) -> Iterator[dict[str, Any]]:
    characters = 0
    for each in itertools.islice(found, limit):
        yield each
        characters += len(each["text"])
        if characters >= PAGE_CHARACTERS:
            return


def followed(
    asked: Readable,
    name: Name,
    wanted: Annotated[schemas.LogChoice, Query()],
    last_event_id: LastEventId = None,
) -> tuple[CallerRequest, Reader, str]:
    """Return a reader for a stream, before the stream begins: afterwards it could not be refused any more."""
    return asked, _reader(asked, name, wanted, after=last_event_id, tail=wanted.begin), wanted.search


@router.get("/logs/stream", operation_id="followLogs", response_class=EventSourceResponse)
async def follow(
    request: Request, name: Name, asked_for: Annotated[tuple[CallerRequest, Reader, str], Depends(followed)]
) -> AsyncIterator[ServerSentEvent]:
    """Follow the output of a job's replicas until the job has ended.

    ``lines``: some that came, as ``items``; the event's id is the place behind them, so that a connection
    that broke goes on there (``Last-Event-ID``), with no line missed or there twice. ``end``: nothing more
    will come. ``problem``: it cannot be followed any more, or the caller may not follow it any more: their
    rights are checked again each minute.
    """
    asked, reader, search = asked_for
    rights = Rights(request, asked)
    while True:
        try:
            await rights.check()
            is_over = await run_in_threadpool(_is_over, asked, name)
            found = _shown(reader, search, ended=is_over)
            while items := await run_in_threadpool(_batch, found):
                yield ServerSentEvent(
                    event="lines", data={"items": items}, id=log_cursors.text(reader.positions)
                )
        except (PacelineError, RequestRefused) as error:
            yield ServerSentEvent(event="problem", data={"detail": str(error)})
            return
        if is_over:
            yield ServerSentEvent(event="end", data={})
            return
        await asyncio.sleep(LOOK_SECONDS)


def _batch(found: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    return list(_page(found, BATCH_LINES))


def _is_over(asked: CallerRequest, name: str) -> bool:
    run = asked.jobs.get(name)
    return run.phase.is_final or asked.jobs.is_lost(run)
