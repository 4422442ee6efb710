"""The room in a cluster, from watches: what a listing of everything says, whatever has happened."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from support.examples import examples
from support.kubelets import node
from support.memory_clusters import MemoryCluster
from support.operator_scenes import job, scene

from paceline.engines.kubernetes import cluster_states, kinds, mirrors
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.engines.kubernetes.mirrors import Mirror, key_of
from paceline.rendering import labels
from paceline.services.cluster.admissions import ClusterRoom
from paceline.services.operators import operators
from paceline.services.operators.room_mirrors import RoomMirror

Object = dict[str, Any]
NAMES = ("n0", "n1", "n2")


def pod(name: str, host: str, phase: str, *, cpu: str, is_replica: bool) -> Object:
    of_job = {labels.JOB: "clicks"} if is_replica else {}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": of_job},
        "spec": {"nodeName": host, "containers": [{"resources": {"requests": {"cpu": cpu}}}]},
        "status": {"phase": phase},
    }


def quota(name: str, cpu: str) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"kind": "ResourceQuota", "metadata": metadata, "status": {"hard": {"cpu": cpu}, "used": {}}}


NODES = st.builds(node, st.sampled_from(NAMES), cpu=st.sampled_from(["4", "80"]))
PODS = st.builds(
    pod, st.sampled_from(["a", "b", "c", "d"]), st.sampled_from(["", *NAMES]),
    st.sampled_from(["Pending", "Running", "Succeeded"]), cpu=st.sampled_from(["500m", "1"]),
    is_replica=st.booleans(),
)  # fmt: skip
QUOTAS = st.builds(quota, st.sampled_from(["q", "r"]), st.sampled_from(["3", "9"]))
#: An object that is there from now on, or goes; or watches that break, with and without the changes since.
STEPS = st.lists(
    st.tuples(st.sampled_from(["there", "gone"]), NODES | PODS | QUOTAS)
    | st.tuples(st.just("cut"), st.booleans()),
    max_size=25,
)


def kind_of(each: Object) -> kinds.ResourceKind:
    return {"Pod": kinds.PODS, "ResourceQuota": kinds.QUOTAS}.get(each.get("kind", ""), kinds.NODES)


async def listed(cluster: MemoryCluster) -> list[Object]:
    """Everything that room depends on; objects of a listing say of which kind they are."""
    found = []
    for kind in (kinds.NODES, kinds.PODS, kinds.QUOTAS):
        found += [{**each, "kind": kind.name} for each in (await cluster.list(kind)).objects]
    return found


def same(room: ClusterRoom, everything: list[Object]) -> bool:
    others = [each for each in everything if labels.JOB not in (each["metadata"].get("labels") or {})]
    state, without_jobs = (cluster_states.read(objects, "default") for objects in (everything, others))

    def by_name(nodes: Any) -> dict[str, Any]:
        return {each.name: each for each in nodes}

    return (
        by_name(room.nodes) == by_name(state.nodes)
        and by_name(room.without_jobs) == by_name(without_jobs.nodes)
        and by_name(room.quotas.get("default", ())) == by_name(state.quotas)
    )


def followed(test: Callable[[MemoryCluster, RoomMirror], Coroutine[Any, Any, None]], *first: Object) -> None:
    """Run a test with a cluster and a mirror that follows it, which has at first the given objects."""

    async def run() -> None:
        cluster = MemoryCluster()
        for each in first:
            await cluster.create(kind_of(each), each)
        mirror = RoomMirror(cluster, on_silence=lambda: None)
        pods = Mirror(
            cluster, kinds.PODS, trimmed=operators._trimmed,
            on_change=lambda each: mirror.pod_changed(
                key_of(each), None if (there := pods.get(key_of(each))) is None else there["use"]
            ),
        )  # fmt: skip
        following = [asyncio.ensure_future(each.run()) for each in (mirror, pods)]
        await pods.is_filled.wait()
        try:
            await test(cluster, mirror)
        finally:
            for each in following:
                each.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await each

    with pytest.MonkeyPatch.context() as patched:
        for name in ("RETRY_SECONDS", "MAX_RETRY_SECONDS"):
            patched.setattr(mirrors, name, 0.001)
        asyncio.run(run())


@settings(max_examples=examples(60), deadline=None)
@given(steps=STEPS)
def test_it_says_what_a_listing_of_everything_says(steps: list[tuple[str, Any]]) -> None:
    async def test(cluster: MemoryCluster, mirror: RoomMirror) -> None:
        for what, each in steps:
            if what == "cut":
                cluster.cut_watches(forget=each)
                continue
            kind, (namespace, name) = kind_of(each), key_of(each)
            with contextlib.suppress(ClusterError):
                await cluster.delete(kind, name, namespace or None, grace_seconds=0)
            if what == "there":
                await cluster.create(kind, each)
        everything = await listed(cluster)
        async with asyncio.timeout(240):
            while not same(await mirror.read(), everything):
                await asyncio.sleep(0.005)

    followed(test)


def test_what_has_not_changed_makes_no_new_revision() -> None:
    async def test(cluster: MemoryCluster, mirror: RoomMirror) -> None:
        first = (await mirror.read()).revision
        beat = {"status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "now"}]}}
        await cluster.patch(kinds.NODES, "n0", None, beat, status=True)
        await cluster.create(kinds.PODS, pod("waits", "", "Pending", cpu="1", is_replica=True))
        await cluster.create(kinds.PODS, pod("runs", "n0", "Running", cpu="1", is_replica=True))
        async with asyncio.timeout(240):
            while (await mirror.read()).nodes[0].used.millicores != 1000:
                await asyncio.sleep(0.005)
        assert (await mirror.read()).revision == first + 1

    followed(test, node("n0"))


def test_an_object_that_cannot_be_read_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    async def test(_: MemoryCluster, mirror: RoomMirror) -> None:
        room = await mirror.read()
        assert [each.name for each in room.nodes] == ["n1"]
        assert room.nodes[0].used.millicores == 0

    odd = pod("odd", "n1", "Running", cpu="many", is_replica=False)
    followed(test, node("n0", cpu="many"), node("n1"), odd)
    assert "an object is left out of the room of the cluster" in caplog.text


def test_without_the_right_to_quotas_no_job_is_admitted_and_running_jobs_are_looked_after() -> None:
    def refuse(verb: str, plural: str, _: str) -> None:
        if plural == kinds.QUOTAS.plural:
            raise ClusterError(f"{plural} cannot be {verb}ed", code=403)

    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            await it.end()
            it.cluster.trouble = refuse
            it.start_operator()
            await it.edit("clicks", suspend=True)
            await it.until_phase("stopped")

    asyncio.run(test())
