"""What cAdvisor and DCGM answered (``tests/sources/recorded``), and when it was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

from paceline.model.roles import ReplicaId, Role
from paceline.sources.readings import Pod

FOLDER = Path(__file__).parents[1] / "sources" / "recorded"
#: When the two readings of cAdvisor were asked for.
ASKED = {1: 1795332941.19, 2: 1795332971.77}
PS, WORKER = Pod("ml", "clicks-ps-0-1"), Pod("ml", "clicks-worker-0-2")
PS_0, WORKER_0 = ReplicaId(Role.PS, 0), ReplicaId(Role.WORKER, 0)

_Result = TypeVar("_Result")


def text(name: str) -> str:
    return (FOLDER / name).read_text()


def awaited(something: Awaitable[_Result]) -> _Result:
    async def run() -> _Result:
        return await something

    return asyncio.run(run())
