"""Copies of a cluster's objects, over one in memory."""

from __future__ import annotations

import asyncio

from support import virtual_time
from support.memory_clusters import MemoryCluster

from paceline.engines.kubernetes import kinds, mirrors
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.engines.kubernetes.mirrors import Mirror


def test_a_watch_that_is_refused_does_not_list_everything_again_and_again() -> None:
    def refuse(verb: str, plural: str, name: str) -> None:
        if verb == "watch":
            raise ClusterError("pods cannot be watched: forbidden", code=403)

    async def follow() -> int:
        cluster = MemoryCluster(lambda: 0.0)
        cluster.trouble = refuse
        following = asyncio.ensure_future(Mirror(cluster, kinds.PODS, on_change=lambda each: None).run())
        await asyncio.sleep(4 * mirrors.MAX_RETRY_SECONDS)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        return cluster.calls.count(("list", "pods/"))

    # After 0, 0.2, 0.6, 1.4, 3, 6.2 and 12.6 s, and then every 15 s.
    assert virtual_time.run(follow()) == 10
