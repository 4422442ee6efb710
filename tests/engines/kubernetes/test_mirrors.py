"""Copies of a cluster's objects, over one in memory."""

from __future__ import annotations

import asyncio

import pytest
from support.memory_clusters import MemoryCluster

from paceline.engines.kubernetes import kinds, mirrors
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.engines.kubernetes.mirrors import Mirror


def test_a_watch_that_is_refused_does_not_list_everything_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mirrors, "RETRY_SECONDS", 0.01)

    def refuse(verb: str, plural: str, name: str) -> None:
        if verb == "watch":
            raise ClusterError("pods cannot be watched: forbidden", code=403)

    async def follow() -> int:
        cluster = MemoryCluster(lambda: 0.0)
        cluster.trouble = refuse
        following = asyncio.ensure_future(Mirror(cluster, kinds.PODS, on_change=lambda each: None).run())
        await asyncio.sleep(0.6)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        return cluster.calls.count(("list", "pods/"))

    assert 2 <= asyncio.run(follow()) <= 8
