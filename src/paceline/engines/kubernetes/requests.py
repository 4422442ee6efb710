"""Sends many requests to a cluster, a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from paceline.engines.kubernetes.clusters import ClusterError

AT_ONCE = 16

T = TypeVar("T")


async def answers(steps: Iterable[Coroutine[Any, Any, T]]) -> list[T | ClusterError]:
    """Return the result of each step, in order; if the cluster refuses a step, its result is the error."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def answer(step: Coroutine[Any, Any, T]) -> T | ClusterError:
        async with gate:
            try:
                return await step
            except ClusterError as error:
                return error

    return await asyncio.gather(*map(answer, steps))
