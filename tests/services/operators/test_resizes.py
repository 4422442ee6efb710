"""Pods that get other cores and memory while they run, over a cluster in memory."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from support.operator_scenes import JOBS, Scene, job, scene

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.model.jobs.adjustments import Adjustment, Knob
from paceline.model.jobs.job_specs import MemoryGrowth
from paceline.services.cluster.annotations import ADJUSTMENTS
from paceline.stores import encodings


def run(test: Callable[[], Any]) -> None:
    asyncio.run(test())


def cores(it: Scene, pod: str) -> str:
    (container,) = it.cluster.of_kind(kinds.PODS)[pod]["spec"]["containers"]
    return str(container["resources"]["limits"]["cpu"])


def resized(it: Scene) -> list[str]:
    """Return the pods of which the cluster was asked for it, each time."""
    return [name.removeprefix("pods/") for verb, name in it.cluster.calls if verb == "resize"]


def told(it: Scene, reason: str) -> list[str]:
    events = it.cluster.of_kind(kinds.EVENTS).values()
    return [each["message"] for each in events if each["reason"] == reason]


async def adjust(it: Scene, *wanted: Adjustment) -> None:
    annotations = {ADJUSTMENTS: encodings.encode(wanted)}
    await it.cluster.patch(JOBS, "clicks", "default", {"metadata": {"annotations": annotations}})


def test_only_what_changes_is_asked_for() -> None:
    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            await it.edit("clicks", overrides={"ps-0": {"cpu": 2}})
            await it.until(lambda: cores(it, "clicks-ps-0-1") == "2")
            await it.until(lambda: len(told(it, "Resized")) == 1)
            asked = resized(it)
            assert (cores(it, "clicks-worker-0-1"), set(asked)) == ("1", {"clicks-ps-0-1"})
            await it.edit("clicks", roles={"worker": {"cpu": "500m"}})
            await it.until(lambda: {cores(it, f"clicks-worker-{index}-1") for index in (0, 1)} == {"500m"})
            await it.until(lambda: len(told(it, "Resized")) == 2)
            assert told(it, "Resized")[0] == "ps-0 has 2 CPU (had 1 CPU)"
            # Until it sees that a pod has them, an operator may ask again: also the first pod, in between.
            others = set(resized(it)[len(asked) :]) - set(asked)
            assert others == {"clicks-worker-0-1", "clicks-worker-1-1"}
            assert cores(it, "clicks-ps-0-1") == "2"

    run(test)


def test_what_is_for_a_time_ends_under_the_next_operator_too() -> None:
    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            cut = Adjustment(knob=Knob.CPU, target="ps-0", value=0.5, until=time.time() + 3600)
            await adjust(it, cut)
            await it.until(lambda: cores(it, "clicks-ps-0-1") == "500m")
            await it.end()
            it.start_operator()
            await adjust(it, Adjustment(knob=Knob.CPU, target="ps-0", value=0.5, until=time.time() + 0.5))
            await it.until(lambda: cores(it, "clicks-ps-0-1") == "1")
            assert it.status()["phase"] == "running"

    run(test)


@pytest.mark.parametrize("text", ["", "nothing", "[]", '[{"knob": "speed"}]', "{", "[" * 10_000])
def test_what_is_no_adjustment_is_none(text: str) -> None:
    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            annotations = {ADJUSTMENTS: text}
            await it.cluster.patch(JOBS, "clicks", "default", {"metadata": {"annotations": annotations}})
            await it.edit("clicks", overrides={"ps-0": {"cpu": 2}})
            await it.until(lambda: cores(it, "clicks-ps-0-1") == "2")

    run(test)


def test_what_the_cluster_refuses_is_told_once_and_had_when_it_can_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            allowed = it.cluster.resize

            async def refuse(pod: str, *_: object) -> Mapping[str, Any]:
                raise ClusterError(f"Pod {pod} cannot be resized: exceeded quota: small", code=403)

            monkeypatch.setattr(it.cluster, "resize", refuse)
            await it.edit("clicks", overrides={"ps-0": {"cpu": 2}})
            await it.until(lambda: told(it, "NotResized"))
            monkeypatch.setattr(it.cluster, "resize", allowed)
            # The quota has room again: it is asked when the operator looks at the job the next time.
            await it.edit("clicks", overrides={"ps-0": {"cpu": 2, "memory": "1Gi"}})
            await it.until(lambda: cores(it, "clicks-ps-0-1") == "2")
            (refused,) = told(it, "NotResized")
            assert refused.startswith("ps-0 keeps what it has: Pod clicks-ps-0-1 cannot be resized")

    run(test)


def test_what_a_node_has_no_room_for_is_told() -> None:
    async def test() -> None:
        async with scene() as it:
            await it.submit(job())
            await it.until_phase("running")
            await it.edit("clicks", overrides={"ps-0": {"cpu": 2}})
            await it.until(lambda: cores(it, "clicks-ps-0-1") == "2")
            pod = it.cluster.of_kind(kinds.PODS)["clicks-ps-0-1"]
            deferred = {
                "type": "PodResizePending",
                "status": "True",
                "reason": "Deferred",
                "message": "Node didn't have enough resource: cpu",
            }
            status = {**pod["status"], "conditions": [deferred]}
            it.cluster.change(kinds.PODS, "clicks-ps-0-1", "default", status=status)
            await it.until(lambda: told(it, "NotResized"))
            (message,) = told(it, "NotResized")
            assert message == "ps-0 keeps what it has: deferred: Node didn't have enough resource: cpu"

    run(test)


def test_one_that_has_ended_keeps_its_size_when_the_next_one_gets_more_memory() -> None:
    async def test() -> None:
        async with scene() as it:
            grows = MemoryGrowth(factor=2.0)
            spec = job()
            roles = tuple(
                dataclasses.replace(role, memory_bytes=1 << 28, memory_growth=grows) for role in spec.roles
            )
            await it.submit(dataclasses.replace(spec, roles=roles))
            await it.until_phase("running")
            name = "clicks-ps-0-1"
            # A container has ended for a moment before its pod has.
            state = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
            container = {"name": "training", "state": state}
            status = {"phase": "Running", "containerStatuses": [container]}
            it.cluster.change(kinds.PODS, name, "default", status=status)
            await it.until(lambda: "clicks-ps-0-2" in it.pods())
            memory = {
                pod: it.cluster.of_kind(kinds.PODS)[pod]["spec"]["containers"][0]["resources"]["limits"]
                for pod in (name, "clicks-ps-0-2")
                if pod in it.pods()
            }
            assert memory["clicks-ps-0-2"]["memory"] == "512Mi"
            assert memory.get(name, {"memory": "256Mi"})["memory"] == "256Mi"
            assert resized(it) == []

    run(test)
