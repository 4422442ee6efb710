"""What is told of a job to those who follow it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from typing import Any

import pytest
from support import filled_homes

from paceline.model.jobs.runs import JobEvent, Run
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.snapshots import Snapshot
from paceline.services.local import jobs, state_dirs
from paceline.services.observing.look_cache import LookCache
from paceline.surfaces.web import feeds


class SlowLookout(LookCache):
    """A look_cache that takes so long that the job ends meanwhile."""

    def snapshot(self, run: Run, *, waits: bool = False) -> Snapshot:
        name, store = run.name, self._jobs.stored(run.name).store
        if not store.get_run(name).phase.is_final:
            ended = dataclasses.replace(store.load_state(name), phase=JobPhase.SUCCEEDED)
            event = JobEvent(at=time.time(), kind="succeeded", message="")
            store.save_state(name, ended, at=time.time(), events=[event])
        return super().snapshot(run, waits=waits)


def test_a_job_that_takes_a_deleted_ones_name_has_its_own_events(
    home: state_dirs.Home, api: jobs.Jobs
) -> None:
    filled_homes.fill(home, "going", phase=JobPhase.SUCCEEDED, loads=(0.5, 0.9), steps=3)
    seconds = iter(range(0, 100, 10))
    feed = feeds.Feed(api, LookCache(api, time.monotonic), "going", lambda: float(next(seconds)))
    store = api.store
    store.append_events("going", [JobEvent(at=1.0, kind="old", message="")])
    assert "old" in [json.loads(text)["kind"] for _, text in asyncio.run(feed.current()).events]
    api.delete("going")
    filled_homes.fill(home, "going", submitted_at=1.1e9, loads=(0.5, 0.9), steps=3)
    store.append_events("going", [JobEvent(at=2.0, kind="new", message="")])
    kinds = [json.loads(text)["kind"] for _, text in asyncio.run(feed.current()).events]
    assert "new" in kinds
    assert "old" not in kinds


def test_a_job_that_ends_during_a_look_is_told_of_to_its_end(
    home: state_dirs.Home, api: jobs.Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "LOOK_SECONDS", 0.01)
    filled_homes.fill(home, "going", phase=JobPhase.RUNNING, loads=(0.5, 0.9), steps=3)
    feed = feeds.Feed(api, SlowLookout(api, time.monotonic), "going", time.monotonic)

    async def allowed() -> None:
        """Let the follower go on."""

    async def told() -> list[Any]:
        return [each async for each in feeds.followed(feed, api, "going", 0, allowed, whole=False)]

    found = asyncio.run(told())
    assert found[-1].event == "end"
    events = [json.loads(each.raw_data) for each in found if each.event == "event"]
    assert [each["kind"] for each in events][-1:] == ["succeeded"]


def test_events_that_a_feed_has_dropped_come_from_the_store(
    home: state_dirs.Home, api: jobs.Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(feeds, "MOST_EVENTS", 3)
    filled_homes.fill(home, "going", phase=JobPhase.RUNNING, loads=(0.5, 0.9), steps=3)
    feed = feeds.Feed(api, LookCache(api, time.monotonic), "going", time.monotonic)
    store = api.store

    async def allowed() -> None:
        """Let the follower go on."""

    async def followed() -> list[Any]:
        stream = feeds.followed(feed, api, "going", 0, allowed, whole=False)
        async for each in stream:
            if each.event == "diagnosis":
                break
        happened = [JobEvent(at=1.0, kind=f"event-{number}", message="") for number in range(7)]
        ended = dataclasses.replace(store.load_state("going"), phase=JobPhase.SUCCEEDED)
        store.save_state("going", ended, at=2.0, events=happened)
        return [each async for each in stream if each.event == "event"]

    found = [json.loads(each.raw_data)["kind"] for each in asyncio.run(followed())]
    assert found == [f"event-{number}" for number in range(7)]
