"""What happens in a job, for many followers: one look a second serves them all."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from fastapi.sse import ServerSentEvent
from starlette.concurrency import run_in_threadpool

from paceline.errors import PacelineError
from paceline.services.life_cycles import StoredJobReader
from paceline.services.observing import diagnosis_summaries
from paceline.services.observing.look_cache import LookCache
from paceline.surfaces import documents
from paceline.surfaces.web.problems import RequestRefused

#: How often a job is looked at and its followers are notified.
LOOK_SECONDS = 1.0
#: For how many jobs a feed is kept.
MOST_FEEDS = 64
#: How many events a feed keeps; followers get older ones from the store.
MOST_EVENTS = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Update:
    """What is known of a job at one moment, in the form in which it is sent.

    Attributes:
        diagnosis: the state of the job in a few numbers.
        snapshot: the whole state of the job.
        events: with their numbers, the oldest first.
        is_over: whether the job has ended, so that no more events will come.
        submitted_at: when the job was submitted (Unix seconds); another job of its name has another time.
    """

    diagnosis: str
    snapshot: str
    events: tuple[tuple[int, str], ...]
    is_over: bool
    submitted_at: float


class Feed:
    """What is known of one job, looked at again when it is a second old.

    Args:
        jobs: the jobs that include it.
        look_cache: looks at the job.
        name: the name of the job.
        clock: a monotonic clock in seconds.
    """

    def __init__(
        self, jobs: StoredJobReader, look_cache: LookCache, name: str, clock: Callable[[], float]
    ) -> None:
        self._jobs, self._look_cache, self._name, self._clock = jobs, look_cache, name, clock
        self._lock = asyncio.Lock()
        self._seen: tuple[float, Update] | None = None
        self._events: collections.deque[tuple[int, str]] = collections.deque(maxlen=MOST_EVENTS)
        self._submitted_at = 0.0

    async def current(self) -> Update:
        """Return what is known of the job, a second old at most.

        Raises:
            NotFound: the job does not exist any more.
            StoreError: the store does not answer.
        """
        async with self._lock:
            if self._seen is None or self._clock() >= self._seen[0]:
                found = await run_in_threadpool(self._look)
                self._seen = self._clock() + LOOK_SECONDS, found
            return self._seen[1]

    def _look(self) -> Update:
        # The events of a job's end are stored by the time it has ended, so its phase is read before them.
        run = self._jobs.get(self._name)
        if run.submitted_at != self._submitted_at:  # A deleted job's events are not those of the next one.
            self._events.clear()
            self._submitted_at = run.submitted_at
        last = self._events[-1][0] if self._events else 0
        self._events.extend(events(self._jobs, self._name, last))
        # All followers share this look, so it has to be current; a page opened afterwards need not wait.
        snapshot = self._look_cache.snapshot(run, waits=True)
        look = self._look_cache.look(run)
        return Update(
            diagnosis=json.dumps(documents.plain(diagnosis_summaries.of(snapshot, look))),
            snapshot=json.dumps(documents.snapshot(snapshot, look)),
            events=tuple(self._events),
            is_over=run.phase.is_final,
            submitted_at=run.submitted_at,
        )


def events(jobs: StoredJobReader, name: str, since_id: int) -> list[tuple[int, str]]:
    """Return what happened to a job after the event with a number, in the form in which it is sent."""
    return [
        (number, json.dumps({"id": number, **documents.plain(each)}))
        for number, each in jobs.events(name, since_id=since_id)
    ]


class Feeds:
    """The feeds of a server; the least recently requested feed makes room for new ones.

    Args:
        clock: a monotonic clock in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._feeds: collections.OrderedDict[tuple[str | None, str], Feed] = collections.OrderedDict()

    def of(self, namespace: str | None, name: str, jobs: StoredJobReader, look_cache: LookCache) -> Feed:
        """Return the feed of a job."""
        key = namespace, name
        if key not in self._feeds:
            self._feeds[key] = Feed(jobs, look_cache, name, self._clock)
            if len(self._feeds) > MOST_FEEDS:
                self._feeds.popitem(last=False)
        self._feeds.move_to_end(key)
        return self._feeds[key]


async def followed(
    feed: Feed,
    jobs: StoredJobReader,
    name: str,
    last_id: int,
    check: Callable[[], Awaitable[None]],
    *,
    whole: bool,
) -> AsyncIterator[ServerSentEvent]:
    """Yield what happens to a job until it has ended: each event once, and each change of its state.

    Args:
        feed: the feed of the job.
        jobs: the jobs that include it.
        name: the name of the job.
        last_id: the number of the last event that the follower has seen.
        check: raises once the follower may not follow any more.
        whole: whether to send snapshots instead of summaries.
    """
    for number, text in await run_in_threadpool(events, jobs, name, last_id):
        yield ServerSentEvent(event="event", raw_data=text, id=str(number))
        last_id = number
    kind, last = "snapshot" if whole else "diagnosis", ""
    submitted_at: float | None = None
    while True:
        try:
            await check()
            update = await feed.current()
            if submitted_at not in (None, update.submitted_at):
                last_id = 0  # It is another job, whose events have numbers of their own.
            news: Sequence[tuple[int, str]] = update.events
            if len(news) >= MOST_EVENTS and news[0][0] > last_id:  # The feed may have dropped some.
                news = await run_in_threadpool(events, jobs, name, last_id)
        except (PacelineError, RequestRefused) as error:
            yield ServerSentEvent(event="problem", data={"detail": str(error)})
            return
        submitted_at = update.submitted_at
        for number, text in news:
            if number > last_id:
                yield ServerSentEvent(event="event", raw_data=text, id=str(number))
                last_id = number
        now = update.snapshot if whole else update.diagnosis
        if now != last:
            yield ServerSentEvent(event=kind, raw_data=now)
            last = now
        if update.is_over:
            yield ServerSentEvent(event="end", data={})
            return
        await asyncio.sleep(LOOK_SECONDS)
