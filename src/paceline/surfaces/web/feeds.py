"""What goes on in a job, for many followers: one look a second serves them all."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from fastapi.sse import ServerSentEvent
from starlette.concurrency import run_in_threadpool

from paceline.errors import PacelineError
from paceline.services.life_cycles import LifeCycle
from paceline.services.observing import job_summaries
from paceline.services.observing.look_cache import LookCache
from paceline.surfaces import documents
from paceline.surfaces.web.problems import RequestRefused

#: How often a job is looked at, and those who follow it are told.
LOOK_SECONDS = 1.0
#: Of so many jobs what was seen last is kept.
MOST_FEEDS = 64
#: Events that a feed keeps; a follower that lacks older ones gets them from the store when it comes.
MOST_EVENTS = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Update:
    """What is known of a job at a moment, as it is sent.

    Attributes:
        digest: how the job does, in a few numbers.
        snapshot: the whole of it.
        events: with their numbers, the oldest first.
        is_over: whether the job has ended, so that no more will come.
    """

    digest: str
    snapshot: str
    events: tuple[tuple[int, str], ...]
    is_over: bool


class Feed:
    """What is known of one job, looked at anew when it is a second old.

    Args:
        jobs: where it is.
        lookout: looks at it.
        name: its name.
        clock: seconds of any clock that only goes on.
    """

    def __init__(self, jobs: LifeCycle, lookout: LookCache, name: str, clock: Callable[[], float]) -> None:
        self._jobs, self._lookout, self._name, self._clock = jobs, lookout, name, clock
        self._lock = asyncio.Lock()
        self._seen: tuple[float, Update] | None = None
        self._events: collections.deque[tuple[int, str]] = collections.deque(maxlen=MOST_EVENTS)

    async def current(self) -> Update:
        """Return what is known.

        Raises:
            NotFound: there is no such job any more.
            StoreError: the store does not answer.
        """
        async with self._lock:
            if self._seen is None or self._clock() >= self._seen[0]:
                found = await run_in_threadpool(self._look)
                self._seen = self._clock() + LOOK_SECONDS, found
            return self._seen[1]

    def _look(self) -> Update:
        # What is told of its end is there as soon as it has ended: so whether it has is asked first.
        run = self._jobs.get(self._name)
        last = self._events[-1][0] if self._events else 0
        self._events.extend(events(self._jobs, self._name, last))
        # Many wait for this one look, so none of them may be behind; who opens a page then waits for none.
        snapshot = self._lookout.snapshot(run, waits=True)
        look = self._lookout.look(run)
        return Update(
            digest=json.dumps(documents.digest(job_summaries.digest(snapshot, look))),
            snapshot=json.dumps(documents.snapshot(snapshot, look)),
            events=tuple(self._events),
            is_over=run.phase.is_final,
        )


def events(jobs: LifeCycle, name: str, since_id: int) -> list[tuple[int, str]]:
    """Return what happened to a job after the event of a number, as it is sent."""
    return [
        (number, json.dumps({"id": number, **documents.event(each)}))
        for number, each in jobs.events(name, since_id=since_id)
    ]


class Feeds:
    """The feeds of a server; a feed that no client has asked for lately makes room for others.

    Args:
        clock: seconds of any clock that only goes on.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._feeds: collections.OrderedDict[tuple[str | None, str], Feed] = collections.OrderedDict()

    def of(self, namespace: str | None, name: str, jobs: LifeCycle, lookout: LookCache) -> Feed:
        """Return the feed of a job."""
        key = namespace, name
        if key not in self._feeds:
            self._feeds[key] = Feed(jobs, lookout, name, self._clock)
            if len(self._feeds) > MOST_FEEDS:
                self._feeds.popitem(last=False)
        self._feeds.move_to_end(key)
        return self._feeds[key]


async def followed(
    feed: Feed,
    jobs: LifeCycle,
    name: str,
    last_id: int,
    check: Callable[[], Awaitable[None]],
    *,
    whole: bool,
) -> AsyncIterator[ServerSentEvent]:
    """Yield what happens to a job until it has ended: its events, each once, and how it does.

    Args:
        feed: of the job.
        jobs: where it is.
        name: its name.
        last_id: the number of the last event that the follower has seen.
        check: raises once the follower may not follow any more.
        whole: whether snapshots are wanted, or digests.
    """
    for number, text in await run_in_threadpool(events, jobs, name, last_id):
        yield ServerSentEvent(event="event", raw_data=text, id=str(number))
        last_id = number
    kind, last = "snapshot" if whole else "digest", ""
    while True:
        try:
            await check()
            update = await feed.current()
        except (PacelineError, RequestRefused) as error:
            yield ServerSentEvent(event="problem", data={"detail": str(error)})
            return
        for number, text in update.events:
            if number > last_id:
                yield ServerSentEvent(event="event", raw_data=text, id=str(number))
                last_id = number
        now = update.snapshot if whole else update.digest
        if now != last:
            yield ServerSentEvent(event=kind, raw_data=now)
            last = now
        if update.is_over:
            yield ServerSentEvent(event="end", data={})
            return
        await asyncio.sleep(LOOK_SECONDS)
