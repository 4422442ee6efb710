"""The end of a job in a queue of Kueue, which keeps its pods by a finalizer: over a cluster in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.memory_clusters import MemoryCluster
from support.operator_scenes import Scene, is_worker, job, scene

from paceline.engines.kubernetes import kinds
from paceline.model.jobs.job_specs import SchedulingSpec
from paceline.rendering import kueue
from paceline.services.operators import kueue_groups

JOBS = kinds.TRAINING_JOBS


def pod(name: str, *, group: str = "clicks", node: str | None = "n0", is_kept: bool = True) -> dict[str, Any]:
    finalizers = [kueue_groups.FINALIZER] if is_kept else []
    return {
        "metadata": {
            "name": name, "namespace": "default", "labels": {kueue.GROUP: group}, "finalizers": finalizers
        },
        "spec": {"nodeName": node} if node else {},
    }  # fmt: skip


def ended(*pods: dict[str, Any]) -> tuple[set[str], set[str]]:
    """Return the pods that are marked and the workloads that are left, when groups were told of their end."""
    cluster = MemoryCluster()

    async def act() -> None:
        for each in pods:
            await cluster.create(kinds.PODS, each)
        for name in ("clicks", "clicks-1"):
            await cluster.create(kinds.WORKLOADS, {"metadata": {"name": name, "namespace": "default"}})
        await kueue_groups.end(cluster, pods)

    asyncio.run(act())
    marked = {
        name
        for name, each in cluster.of_kind(kinds.PODS).items()
        if (each["metadata"].get("annotations") or {}).get(kueue.RETRIABLE) == "false"
    }
    return marked, set(cluster.of_kind(kinds.WORKLOADS))


BOTH = {"clicks", "clicks-1"}


def test_one_pod_of_each_group_that_ran_is_marked() -> None:
    assert ended(pod("a"), pod("b")) == ({"a"}, BOTH)
    assert ended(pod("a"), pod("b", group="clicks-1")) == ({"a", "b"}, BOTH)


def test_a_group_with_a_pod_that_never_ran_ends_with_its_workload() -> None:
    assert ended(pod("a"), pod("b", node=None)) == (set(), {"clicks-1"})


def test_what_kueue_does_not_keep_is_left_alone() -> None:
    assert ended(pod("a", is_kept=False), pod("b", is_kept=False, node=None)) == (set(), BOTH)


def test_what_is_gone_already_is_no_error() -> None:
    cluster = MemoryCluster()
    asyncio.run(kueue_groups.end(cluster, [pod("a"), pod("b", group="other", node=None)]))


def queued(**more: Any) -> Any:
    return job(scheduling=SchedulingSpec(queue="night"), **more)


async def begun(it: Scene) -> None:
    """Begin a job in a queue, and have Kueue keep its pods."""
    await it.cluster.create(kinds.LOCAL_QUEUES, {"metadata": {"name": "night", "namespace": "default"}})
    await it.submit(queued())
    await it.until_phase("running")
    for name, each in it.cluster.of_kind(kinds.PODS).items():
        kept = {**each["metadata"], "finalizers": [kueue_groups.FINALIZER]}
        it.cluster.change(kinds.PODS, name, metadata=kept)


def is_marked(it: Scene) -> bool:
    return any(
        (each["metadata"].get("annotations") or {}).get(kueue.RETRIABLE) == "false"
        for each in it.cluster.of_kind(kinds.PODS).values()
    )


def test_a_job_that_has_ended_is_not_kept() -> None:
    async def test() -> None:
        async with scene() as it:
            await begun(it)
            assert not is_marked(it)
            it.kubelet.exit_code = lambda pod: 0 if is_worker(pod) else None
            await it.until_phase("succeeded")
            await it.until(lambda: is_marked(it))

    asyncio.run(test())


@pytest.mark.parametrize("step", ["stop", "delete a pod"])
def test_a_job_that_waits_in_its_queue_can_be_stopped(step: str) -> None:
    """Kueue keeps deleted pods that never got a node, and no kubelet ends them."""

    async def test() -> None:
        async with scene() as it:
            it.kubelet.is_full = True
            await it.cluster.create(
                kinds.LOCAL_QUEUES, {"metadata": {"name": "night", "namespace": "default"}}
            )
            await it.submit(queued())
            await it.until(lambda: len(it.pods()) == 3)
            for name, each in it.cluster.of_kind(kinds.PODS).items():
                kept = {**each["metadata"], "finalizers": [kueue_groups.FINALIZER]}
                it.cluster.change(kinds.PODS, name, metadata=kept)
            if step == "stop":
                await it.edit("clicks", suspend=True)
                await it.until_phase("stopped")
            else:
                await it.cluster.delete(kinds.PODS, "clicks-worker-0-1", "default")
                await it.until(lambda: "clicks-worker-0-2" in it.pods())

    asyncio.run(test())


@pytest.mark.parametrize("is_there", [True, False], ids=["an operator sees it", "none sees it"])
def test_a_job_that_is_deleted_is_not_kept(is_there: bool) -> None:
    async def test() -> None:
        async with scene() as it:
            await begun(it)
            if not is_there:
                await it.end()
            it.cluster.remove(JOBS, "clicks")
            if not is_there:
                it.start_operator()
            await it.until(lambda: is_marked(it))

    asyncio.run(test())


def test_a_job_that_is_resumed_is_another_group() -> None:
    async def test() -> None:
        async with scene() as it:
            await begun(it)
            await it.edit("clicks", suspend=True)
            await it.until_phase("stopped")
            await it.end()
            it.start_operator()
            await it.edit("clicks", suspend=False)
            await it.until_phase("running")
            groups = {
                name: each["metadata"]["labels"][kueue.GROUP]
                for name, each in it.cluster.of_kind(kinds.PODS).items()
                if name.endswith("-2")
            }
            assert len(groups) == 3
            assert set(groups.values()) == {"clicks.1"}

    asyncio.run(test())
