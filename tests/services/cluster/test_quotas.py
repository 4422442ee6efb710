"""What bounds a namespace, and what is taken of that."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.memory_clusters import MemoryCluster

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.model.jobs.quotas import QuotaUnit, QuotaUse, QuotaUses, Use
from paceline.services.cluster import quotas


def object_(name: str, namespace: str = "ads", **parts: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, **parts}


def looked(cluster: MemoryCluster, *made: tuple[kinds.ResourceKind, dict[str, Any]]) -> QuotaUses:
    async def look() -> QuotaUses:
        for kind, each in made:
            await cluster.create(kind, each)
        return await quotas.look(cluster, "ads")

    return asyncio.run(look())


def test_a_quota_says_what_is_taken_of_it() -> None:
    quota = object_(
        "team",
        spec={"hard": {"requests.cpu": "8", "limits.memory": "16Gi", "count/trainingjobs.paceline.dev": "5"}},
        status={
            "hard": {"requests.cpu": "10", "limits.memory": "16Gi"},
            "used": {"requests.cpu": "2500m", "limits.memory": "4Gi"},
        },
    )
    other = object_("team", "search", spec={"hard": {"pods": "1"}})
    found = looked(MemoryCluster(), (kinds.QUOTAS, quota), (kinds.QUOTAS, other))
    uses = (
        Use(resource="count/trainingjobs.paceline.dev", unit=QuotaUnit.COUNT, used=None, hard=5.0),
        Use(resource="limits.memory", unit=QuotaUnit.BYTES, used=4.0 * 2**30, hard=16.0 * 2**30),
        Use(resource="requests.cpu", unit=QuotaUnit.CORES, used=2.5, hard=10.0),
    )
    assert found == QuotaUses(items=(QuotaUse(kind="ResourceQuota", name="team", uses=uses),))
    assert [each.share for each in uses] == [None, 0.25, 0.25]


def test_a_queue_of_kueue_says_who_waits_in_it() -> None:
    flavors = [
        {
            "name": "spot",
            "resources": [{"name": "cpu", "total": "3"}, {"name": "nvidia.com/gpu", "total": 2}],
        },
        {"name": "fixed", "resources": [{"name": "cpu", "total": "500m"}]},
    ]
    status = {"pendingWorkloads": 2, "admittedWorkloads": 1, "flavorsReservation": flavors}
    found = looked(MemoryCluster(), (kinds.LOCAL_QUEUES, object_("nightly", status=status)))
    (queue,) = found.items
    assert (queue.kind, queue.pending, queue.admitted) == ("LocalQueue", 2, 1)
    assert [(use.resource, use.used, use.unit) for use in queue.uses] == [
        ("cpu", 3.5, QuotaUnit.CORES),
        ("nvidia.com/gpu", 2.0, QuotaUnit.COUNT),
    ]
    assert {use.hard for use in queue.uses} == {None}


@pytest.mark.parametrize(("code", "unknown"), [(403, ("queues of Kueue: it is refused",)), (404, ())])
def test_what_cannot_be_looked_at_is_said(code: int, unknown: tuple[str, ...]) -> None:
    cluster = MemoryCluster()

    def refuse(verb: str, plural: str, name: str) -> None:
        if plural == "localqueues":
            raise ClusterError("it is refused", code=code)

    cluster.trouble = refuse
    assert looked(cluster) == QuotaUses(unknown=unknown)
