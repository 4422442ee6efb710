"""Each key once, when it is due, never twice at a time, and later after each failure."""

from __future__ import annotations

import asyncio
import time

import pytest

from paceline.services.operators import work_queues
from paceline.services.operators.work_queues import WorkQueue


def test_a_key_is_given_once_for_all_reasons_at_the_earliest_time() -> None:
    async def test() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a", 7200.0)
        queue.add("a", 0.02)
        queue.add("a", 3600.0)
        began = time.monotonic()
        assert await queue.take() == "a"
        assert time.monotonic() - began > 0.01  # and not after the hour that was said last: that never came
        queue.done("a")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await queue.take()

    asyncio.run(test())


def test_a_key_under_way_waits_for_its_return_and_keeps_no_other_waiting() -> None:
    async def test() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        assert await queue.take() == "a"
        queue.add("a")
        queue.add("b", 0.02)
        assert await queue.take() == "b"
        taking = asyncio.create_task(queue.take())
        await asyncio.sleep(0.03)
        assert not taking.done()
        queue.done("a")
        assert await taking == "a"

    asyncio.run(test())


def test_a_key_that_fails_comes_back_later_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_queues, "FIRST_RETRY_SECONDS", 0.02)

    async def test() -> list[float]:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        waits = []
        for _ in range(4):
            began = time.monotonic()
            await queue.take()
            waits.append(time.monotonic() - began)
            queue.done("a", failed=True)
        return waits

    waits = asyncio.run(test())
    assert waits[1] >= 0.019
    assert waits[2] >= 0.039
    assert waits[3] >= 0.079
