"""Each key once, when it is due, never twice at a time, and later after each failure."""

from __future__ import annotations

import asyncio

import pytest
from support import virtual_time

from paceline.services.operators import work_queues
from paceline.services.operators.work_queues import WorkQueue


def test_a_key_is_given_once_for_all_reasons_at_the_earliest_time() -> None:
    async def test() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a", 7200.0)
        queue.add("a", 20.0)
        queue.add("a", 3600.0)
        assert await queue.take() == "a"
        assert asyncio.get_running_loop().time() == pytest.approx(20.0)
        queue.done("a")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(36_000.0):
                await queue.take()

    virtual_time.run(test())


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

    virtual_time.run(test())


def test_a_key_may_fail_for_ever() -> None:
    async def test() -> float:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        for _ in range(1100):
            await queue.take()
            queue.done("a", failed=True)
        began = asyncio.get_running_loop().time()
        await queue.take()
        return asyncio.get_running_loop().time() - began

    assert virtual_time.run(test()) == pytest.approx(work_queues.MAX_RETRY_SECONDS)


def test_a_key_that_fails_comes_back_later_each_time() -> None:
    async def test() -> list[float]:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        waits = []
        for _ in range(4):
            began = asyncio.get_running_loop().time()
            await queue.take()
            waits.append(asyncio.get_running_loop().time() - began)
            queue.done("a", failed=True)
        return waits

    first = work_queues.FIRST_RETRY_SECONDS
    assert virtual_time.run(test()) == pytest.approx([0.0, first, 2 * first, 4 * first])
