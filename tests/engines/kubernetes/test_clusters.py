"""What Paceline takes for granted of the Kubernetes API: true of the one in memory, and of a real one.

kmock, a mock of the API by kopf's author, answers over HTTP: with it the real client is tested where there is
no cluster. What it does not keep of the contract is listed below, and expected to fail: should it learn to,
the test says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import kmock
import pytest
import yaml
from support.memory_clusters import MemoryCluster

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clients import RealCluster
from paceline.engines.kubernetes.clusters import Cluster, ClusterError, Object

NAMESPACE = "default"
Test = Callable[[Cluster], Awaitable[None]]
#: What kmock does not do (0.8), by the test that sees it.
BEYOND_KMOCK = {
    "test_what_is_made_has_an_identity_and_versions": "it gives objects neither identities nor versions",
    "test_a_dry_run_makes_nothing": "it makes the object all the same",
    "test_labels_select": "it ignores label selectors",
    "test_a_name_is_taken_once": "its conflict says neither AlreadyExists nor anything that clients can read",
    "test_who_has_not_seen_the_last_version_conflicts": "it gives objects no versions",
    "test_a_watch_goes_on_from_a_listing": "its watches begin with all that there is, whatever the version",
}


@pytest.fixture(params=["memory", "kmock", pytest.param("real", marks=pytest.mark.kubernetes)])
def check(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Test], None]:
    """Run a test with a cluster."""
    if request.param == "real" and not os.environ.get("KUBECONFIG"):
        pytest.skip("no cluster: KUBECONFIG is not set (make e2e)")
    beyond = BEYOND_KMOCK.get(request.node.originalname)
    if request.param == "kmock" and beyond is not None:
        request.node.add_marker(pytest.mark.xfail(reason=f"kmock: {beyond}", strict=True))

    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[Cluster]:
        if request.param == "memory":
            yield MemoryCluster()
            return
        async with contextlib.AsyncExitStack() as stack:
            if request.param == "kmock":
                api = await stack.enter_async_context(kmock.KubernetesEmulator())
                await stack.enter_async_context(kmock.Server(api))
                api["get /readyz"] << b"ok"
                api.resources["v1/configmaps"] = {}
                (tmp_path / "kubeconfig").write_text(kubeconfig(str(api.url)))
                monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
            cluster = RealCluster()
            stack.push_async_callback(cluster.close)
            yield cluster

    def checked(test: Test) -> None:
        async def run() -> None:
            async with opened() as cluster:
                await test(cluster)

        asyncio.run(run())

    return checked


def kubeconfig(server: str) -> str:
    """Return the configuration of a client of a server without users."""
    return yaml.safe_dump(
        {
            "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": server}}],
            "users": [{"name": "it", "user": {}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        }
    )


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


def test_what_is_made_is_there(check: Callable[[Test], None]) -> None:
    async def test(cluster: Cluster) -> None:
        new = await create(cluster, a="1")
        found = await cluster.get(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)
        assert found["data"] == {"a": "1"}
        listing = await cluster.list(kinds.CONFIG_MAPS, namespace=NAMESPACE)
        assert name_of(new) in map(name_of, listing.objects)
        assert {each["kind"] for each in listing.objects} == {"ConfigMap"}
        elsewhere = await cluster.list(kinds.CONFIG_MAPS, namespace="kube-system")
        assert name_of(new) not in map(name_of, elsewhere.objects)
        await cluster.delete(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)

    check(test)


def test_a_dry_run_makes_nothing(check: Callable[[Test], None]) -> None:
    async def test(cluster: Cluster) -> None:
        would = await cluster.create(kinds.CONFIG_MAPS, made(a="1"), dry_run=True)
        assert would["data"] == {"a": "1"}
        with pytest.raises(ClusterError) as missing:
            await cluster.get(kinds.CONFIG_MAPS, name_of(would), NAMESPACE)
        assert missing.value.is_missing

    check(test)


def test_what_is_made_has_an_identity_and_versions(check: Callable[[Test], None]) -> None:
    async def test(cluster: Cluster) -> None:
        new = await create(cluster)
        found = await cluster.get(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)
        changes = {"metadata": {"labels": {"by": "x"}}}
        patched = await cluster.patch(kinds.CONFIG_MAPS, name_of(new), NAMESPACE, changes)
        await cluster.delete(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)
        assert found["metadata"]["uid"] == new["metadata"]["uid"] == patched["metadata"]["uid"]
        assert found["metadata"]["resourceVersion"] == new["metadata"]["resourceVersion"]
        assert patched["metadata"]["resourceVersion"] != new["metadata"]["resourceVersion"]

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


def test_what_is_gone_is_missing(check: Callable[[Test], None]) -> None:
    async def test(cluster: Cluster) -> None:
        new = await create(cluster)
        await cluster.delete(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)
        with pytest.raises(ClusterError) as missing:
            await cluster.get(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)
        assert missing.value.is_missing
        with pytest.raises(ClusterError) as missing:
            await cluster.delete(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)
        assert missing.value.is_missing

    check(test)


def test_a_name_is_taken_once(check: Callable[[Test], None]) -> None:
    async def test(cluster: Cluster) -> None:
        new = await create(cluster)
        with pytest.raises(ClusterError) as taken:
            await cluster.create(kinds.CONFIG_MAPS, made(name_of(new)))
        await cluster.delete(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)
        assert (taken.value.is_taken, taken.value.is_conflict) == (True, False)

    check(test)


def test_who_has_not_seen_the_last_version_conflicts(check: Callable[[Test], None]) -> None:
    async def test(cluster: Cluster) -> None:
        new = await create(cluster)
        stale = {"metadata": {"resourceVersion": "1"}, "data": {"a": "2"}}
        with pytest.raises(ClusterError) as conflict:
            await cluster.patch(kinds.CONFIG_MAPS, name_of(new), NAMESPACE, stale)
        await cluster.delete(kinds.CONFIG_MAPS, name_of(new), NAMESPACE)
        assert (conflict.value.is_taken, conflict.value.is_conflict) == (False, True)

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


def test_a_watch_tells_what_happens(check: Callable[[Test], None]) -> None:
    async def test(cluster: Cluster) -> None:
        name = made()["metadata"]["name"]
        listing = await cluster.list(kinds.CONFIG_MAPS, namespace=NAMESPACE)

        async def watch() -> list[str]:
            told = []
            happenings = cluster.watch(kinds.CONFIG_MAPS, listing.version, namespace=NAMESPACE)
            async for what, each in happenings:
                told += [what] if name_of(each) == name else []
                if what == "DELETED" and name_of(each) == name:
                    break
            return told

        watching = asyncio.create_task(watch())
        await asyncio.sleep(0.5)
        await cluster.create(kinds.CONFIG_MAPS, made(name))
        await cluster.patch(kinds.CONFIG_MAPS, name, NAMESPACE, {"metadata": {"labels": {"more": "1"}}})
        await cluster.delete(kinds.CONFIG_MAPS, name, NAMESPACE)
        async with asyncio.timeout(10):
            assert await watching == ["ADDED", "MODIFIED", "DELETED"]

    check(test)


def test_a_watch_goes_on_from_a_listing(check: Callable[[Test], None]) -> None:
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
        assert await cluster.read("/readyz", limit_bytes=100) == b"ok"
        for path in ("/nothing", "/api/v1/nodes/no-such-node/proxy/metrics/cadvisor"):
            with pytest.raises(ClusterError, match=f"{path} cannot be read: .+") as missing:
                await cluster.read(path, limit_bytes=1000)
            assert missing.value.is_missing

    check(test)
