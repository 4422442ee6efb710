"""One of several processes acts, and another takes over when it is gone."""

from __future__ import annotations

import asyncio

from support import virtual_time
from support.memory_clusters import MemoryCluster

from paceline.engines.kubernetes import kinds, leases
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.engines.kubernetes.leases import Lease


def lease(cluster: MemoryCluster, identity: str) -> Lease:
    return Lease(cluster, "operator", "paceline", identity=identity, clock=_now)


def _now() -> float:
    return asyncio.get_running_loop().time()


def holder(cluster: MemoryCluster) -> str:
    return str(cluster.of_kind(kinds.LEASES)["operator"]["spec"]["holderIdentity"])


def test_a_second_one_waits_until_the_first_renews_no_more() -> None:
    async def test() -> None:
        cluster = MemoryCluster(_now)
        await lease(cluster, "a").acquire()
        holding = asyncio.create_task(lease(cluster, "a").hold())
        second = asyncio.create_task(lease(cluster, "b").acquire())
        await asyncio.sleep(10 * leases.DURATION_SECONDS)
        assert not second.done()
        holding.cancel()
        async with asyncio.timeout(leases.DURATION_SECONDS + 2 * leases.RETRY_SECONDS):
            await second
        assert holder(cluster) == "b"
        assert cluster.of_kind(kinds.LEASES)["operator"]["spec"]["leaseTransitions"] == 1

    virtual_time.run(test())


def test_a_lease_that_is_given_back_is_taken_at_once() -> None:
    async def test() -> None:
        cluster = MemoryCluster(_now)
        first = lease(cluster, "a")
        await first.acquire()
        await first.release()
        async with asyncio.timeout(leases.RETRY_SECONDS):
            await lease(cluster, "b").acquire()
        await first.release()
        assert holder(cluster) == "b", "what another process holds is not given back"

    virtual_time.run(test())


def test_who_cannot_renew_stops_before_another_may_begin() -> None:
    async def test() -> None:
        cluster = MemoryCluster(_now)
        first = lease(cluster, "a")
        await first.acquire()

        def refuse(verb: str, plural: str, name: str) -> None:
            raise ClusterError("the API server does not answer")

        cluster.trouble = refuse
        began = _now()
        await first.hold()
        assert _now() - began < leases.DURATION_SECONDS

    virtual_time.run(test())


def test_who_was_replaced_stops() -> None:
    async def test() -> None:
        cluster = MemoryCluster(_now)
        first = lease(cluster, "a")
        await first.acquire()
        taken = dict(cluster.of_kind(kinds.LEASES)["operator"])
        cluster.change(kinds.LEASES, "operator", "paceline", spec={**taken["spec"], "holderIdentity": "b"})
        async with asyncio.timeout(2 * leases.RETRY_SECONDS):
            await first.hold()

    virtual_time.run(test())


def test_of_many_that_want_it_at_once_one_gets_it() -> None:
    async def test() -> None:
        cluster = MemoryCluster(_now)
        wanting = [asyncio.create_task(lease(cluster, f"{i}").acquire()) for i in range(8)]
        await asyncio.sleep(leases.RETRY_SECONDS)
        assert sum(each.done() for each in wanting) == 1
        for each in wanting:
            each.cancel()

    virtual_time.run(test())
