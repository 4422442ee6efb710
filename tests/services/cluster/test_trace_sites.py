"""Traces in the pods of a job, brought here."""

from __future__ import annotations

import asyncio
import collections
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pytest

from paceline.engines.kubernetes.clusters import Cluster, ClusterError
from paceline.engines.kubernetes.loops import Loop
from paceline.services.cluster.trace_sites import PodTraceSite

NAME = "2026-01-02T03-04-05.678Z"
FILES = ("ps-0.1.profile", "worker-0.1.parquet", "worker-1.1.zip")


class Agents:
    """Pods that share the folder of their run: each agent has the files of all."""

    def __init__(self, silent: str = "", busy: int | None = None) -> None:
        self.silent = silent
        self.busy = busy
        self.asked: collections.Counter[str] = collections.Counter()

    async def get(self, *_: Any) -> Any:
        raise ClusterError("there is no secret", code=404)

    async def stream(self, path: str, **_: Any) -> AsyncGenerator[bytes]:
        yield await self.read(path)

    async def read(self, path: str, **_: Any) -> bytes:
        await asyncio.sleep(0)
        at, _, what = path.partition("/traces")
        if at == self.silent:
            raise ClusterError("it does not answer")
        self.asked[what] += 1
        if self.busy is not None and self.asked[what] % 2:
            raise ClusterError("it cannot be reached", code=self.busy)
        if what == "":
            return json.dumps([NAME]).encode()
        return json.dumps(FILES).encode() if what == f"/{NAME}" else b"PAR1"


def fetched(agents: Agents, folder: Path) -> list[str]:
    loop = cast("Loop", None)
    site = PodTraceSite(cast("Cluster", agents), loop, ["a", "b", "c"], folder, namespace="ml", job="clicks")
    asyncio.run(site._fetch(NAME))
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_file_that_several_agents_have_is_brought_once(tmp_path: Path) -> None:
    agents = Agents()
    assert fetched(agents, tmp_path) == sorted(FILES)
    assert [agents.asked[f"/{NAME}/{file}"] for file in FILES] == [1, 1, 1]
    assert fetched(agents, tmp_path) == sorted(FILES)
    assert agents.asked[f"/{NAME}/{FILES[0]}"] == 1


def test_an_agent_that_does_not_answer_keeps_nothing_from_the_others(tmp_path: Path) -> None:
    assert fetched(Agents(silent="a"), tmp_path) == sorted(FILES)


@pytest.mark.parametrize(
    "code", [502, 429]
)  # of an agent that gets no core, and of an API server that is busy
def test_agents_that_do_not_answer_at_once_are_asked_again(tmp_path: Path, code: int) -> None:
    assert fetched(Agents(busy=code), tmp_path) == sorted(FILES)
