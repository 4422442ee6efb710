"""What Paceline takes for granted of the Kubernetes API: true of the one in memory, and of a real one."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from support.memory_clusters import MemoryCluster

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clients import RealCluster
from paceline.engines.kubernetes.clusters import Cluster, ClusterError, Object

NAMESPACE = "default"
Test = Callable[[Cluster], Awaitable[None]]


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.kubernetes)])
def check(request: pytest.FixtureRequest) -> Callable[[Test], None]:
    """Run a test with a cluster."""
    if request.param == "real" and not os.environ.get("KUBECONFIG"):
        pytest.skip("no cluster: KUBECONFIG is not set (make e2e)")

    def checked(test: Test) -> None:
        async def run() -> None:
            if request.param == "memory":
                await test(MemoryCluster())
                return
            cluster = RealCluster()
            try:
                await test(cluster)
            finally:
                await cluster.close()

        asyncio.run(run())

    return checked


def made(name: str | None = None, **data: str) -> dict[str, Any]:
    metadata = {
        "name": name or f"t-{uuid.uuid4().hex[:10]}",
        "namespace": NAMESPACE,
        "labels": {"of": "test"},
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def create(cluster: Cluster, **data: str) -> Object:
    return await cluster.create(kinds.CONFIG_MAPS, made(**data))


def name_of(each: Object) -> str:
    return str(each["metadata"]["name"])


def test_what_is_made_is_there_and_has_an_identity(check: Callable[[Test], None]) -> None:
    async def test(cluster: Cluster) -> None:
        new = await create(cluster, a="1")
        found = await cluster.get(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)
        assert found["metadata"]["uid"] == new["metadata"]["uid"]
        assert found["data"] == {"a": "1"}
        listing = await cluster.list(kinds.CONFIG_MAPS, namespace=NAMESPACE, selector="of=test")
        assert name_of(new) in map(name_of, listing.objects)
        assert {each["kind"] for each in listing.objects} == {"ConfigMap"}
        await cluster.delete(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)

    check(test)


def test_labels_select(check: Callable[[Test], None]) -> None:
    async def test(cluster: Cluster) -> None:
        new = await create(cluster)
        for selector, is_there in (("of", True), ("of=test", True), ("of=other", False), ("other", False)):
            listing = await cluster.list(kinds.CONFIG_MAPS, namespace=NAMESPACE, selector=selector)
            assert (name_of(new) in map(name_of, listing.objects)) is is_there, selector
        elsewhere = await cluster.list(kinds.CONFIG_MAPS, namespace="kube-system", selector="of=test")
        assert elsewhere.objects == []
        await cluster.delete(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)

    check(test)


def test_errors_say_what_is_the_case(check: Callable[[Test], None]) -> None:
    async def test(cluster: Cluster) -> None:
        new = await create(cluster)
        with pytest.raises(ClusterError) as taken:
            await cluster.create(kinds.CONFIG_MAPS, made(name_of(new)))
        assert (taken.value.is_taken, taken.value.is_conflict) == (True, False)
        stale = {"metadata": {"resourceVersion": "1"}, "data": {"a": "2"}}
        with pytest.raises(ClusterError) as conflict:
            await cluster.patch(kinds.CONFIG_MAPS, name_of(new), NAMESPACE, stale)
        assert (conflict.value.is_taken, conflict.value.is_conflict) == (False, True)
        await cluster.delete(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)
        with pytest.raises(ClusterError) as missing:
            await cluster.get(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)
        assert missing.value.is_missing
        with pytest.raises(ClusterError) as missing:
            await cluster.delete(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)
        assert missing.value.is_missing

    check(test)


def test_a_patch_merges_and_null_removes(check: Callable[[Test], None]) -> None:
    async def test(cluster: Cluster) -> None:
        new = await create(cluster, a="1", b="2")
        changes = {"metadata": {"labels": {"of": None, "by": "x"}}}
        patched = await cluster.patch(kinds.CONFIG_MAPS, name_of(new), NAMESPACE, changes)
        assert patched["metadata"]["labels"] == {"by": "x"}
        assert patched["data"] == {"a": "1", "b": "2"}
        await cluster.delete(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)

    check(test)


def test_a_watch_tells_what_happens_after_a_listing(check: Callable[[Test], None]) -> None:
    async def test(cluster: Cluster) -> None:
        before = await create(cluster)
        listing = await cluster.list(kinds.CONFIG_MAPS, namespace=NAMESPACE, selector="of=test")
        new = await create(cluster)
        changes = {"metadata": {"labels": {"more": "1"}}}
        await cluster.patch(kinds.CONFIG_MAPS, name_of(new), NAMESPACE, changes)
        await cluster.delete(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)
        told = []
        watch = cluster.watch(kinds.CONFIG_MAPS, listing.version, namespace=NAMESPACE, selector="of=test")
        async with asyncio.timeout(10):
            async for what, each in watch:
                assert name_of(each) != name_of(before), "that was before"
                told.append((what, name_of(each)))
                if what == "DELETED":
                    break
        assert told == [(what, name_of(new)) for what in ("ADDED", "MODIFIED", "DELETED")]
        await cluster.delete(kinds.CONFIG_MAPS, name_of(before), NAMESPACE)

    check(test)


def test_a_path_is_read(check: Callable[[Test], None]) -> None:
    async def test(cluster: Cluster) -> None:
        assert await cluster.read("/readyz") == b"ok"
        for path in ("/nothing", "/api/v1/nodes/no-such-node/proxy/stats/summary"):
            with pytest.raises(ClusterError, match=f"{path} cannot be read: .+") as missing:
                await cluster.read(path)
            assert missing.value.is_missing

    check(test)
