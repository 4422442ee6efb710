"""Why a job on a cluster does not run: over one in memory with nodes and an operator."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.kubelets import silence
from support.operator_scenes import Scene, job

from paceline.engines.kubernetes import kinds, times
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.model.explanations.causes import Cause, Explanation
from paceline.model.jobs.job_specs import FitPolicy, SchedulingSpec
from paceline.rendering import labels
from paceline.services.cluster.jobs import ClusterJobs
from paceline.services.cluster.measurements import ClusterMeasurements
from paceline.services.observing import recordings
from paceline.specs.job_file import custom_resources


class World:
    """A scene, and what is said of its jobs."""

    def __init__(self, scene: Scene, runner: asyncio.Runner, tmp_path: Path) -> None:
        self.scene, self.runner = scene, runner
        self.cluster = scene.cluster
        measurements = ClusterMeasurements(scene.cluster, store_url=None, home=tmp_path)
        self.close = measurements.close
        self.jobs = ClusterJobs(scene.cluster, "default", runner, measurements)

    def submit(self, **more: Any) -> None:
        self.runner.run(self.scene.submit(job(**more)))

    def until_phase(self, phase: str, name: str = "clicks") -> None:
        self.runner.run(self.scene.until_phase(phase, name))

    def until(self, holds: Any) -> None:
        self.runner.run(self.scene.until(holds))

    def why(self, name: str = "clicks") -> Explanation:
        return recordings.explain(self.jobs, name)[1]

    def cause(self, name: str = "clicks") -> Cause:
        (cause,) = self.why(name).causes
        return cause


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with asyncio.Runner() as runner:
        scene = Scene()
        runner.run(scene.begin())
        world = World(scene, runner, tmp_path)
        yield world
        world.close()
        runner.run(scene.close())


def held(world: World, name: str = "clicks") -> None:
    world.until(lambda: "waits for" in world.scene.status(name).get("message", ""))


def test_a_job_that_runs_has_nothing_wrong(world: World) -> None:
    world.submit()
    world.until_phase("running")
    why = world.why()
    # No agent answers: nothing is measured, and that is no reason to say nothing.
    assert why.summary.startswith("nothing is wrong as far as can be seen: clicks runs")
    assert why.unknown[0].startswith("what was measured: /api/v1/namespaces/default/pods/clicks-ps-0-1:")


def test_it_waits_for_room_that_another_job_takes(world: World) -> None:
    world.submit(name="first", workers=6)
    world.until_phase("running", "first")
    world.submit(name="second", workers=6)
    held(world, "second")
    cause = world.cause("second")
    assert cause.name == "no-room"
    seen = [each.text for each in cause.evidence]
    assert seen[0] == "6 more worker: too little CPU for 0.999 cores (n0, n1)"
    assert "room is taken by jobs that run: first" in seen


def test_it_waits_behind_a_bigger_one(world: World) -> None:
    """Both fit alone; room is kept for the job that came first, which has waited beyond its patience."""
    world.submit(name="runs", workers=3)
    world.until_phase("running", "runs")
    world.runner.run(world.scene.end("operator"))
    world.submit(name="big", workers=6)
    old = world.cluster.of_kind(kinds.TRAINING_JOBS)["big"]
    long_ago = {**old["metadata"], "creationTimestamp": times.text(time.time() - 3600)}
    world.cluster.change(kinds.TRAINING_JOBS, "big", metadata=long_ago)
    world.runner.run(started(world))
    world.submit(name="small", workers=1)
    held(world, "small")
    cause = world.cause("small")
    assert (cause.name, "before it: big" in cause.what) == ("behind", True)


def test_its_spec_is_wrong(world: World) -> None:
    made = custom_resources.resource(job(), "default")
    made["spec"]["wroker"] = {"replicas": 1}
    world.runner.run(world.cluster.create(kinds.TRAINING_JOBS, made))
    world.until_phase("failed")
    cause = world.cause()
    assert (cause.name, cause.evidence[0].text) == ("wrong-spec", "spec.wroker: unknown key 'wroker'")


def test_a_user_removed_a_pod(world: World) -> None:
    world.submit()
    world.until_phase("running")
    world.cluster.remove(kinds.PODS, "clicks-worker-0-1")
    world.until(lambda: "clicks-worker-0-2" in world.scene.pods())
    cause = world.cause()
    assert cause.name == "removed"
    assert cause.evidence[0].text == "worker-0: lost: removed, and not by Paceline, restart 1 of 3"
    world.until_phase("running")
    assert world.cause().is_past


def test_a_command_fails(world: World) -> None:
    world.scene.kubelet.exit_code = lambda pod: 3 if "worker-0" in pod["metadata"]["name"] else None
    world.submit()
    world.until_phase("failed")
    (cause,) = world.why().causes
    assert cause.name == "command-failed"
    assert cause.evidence[0].count == 4
    assert "--attempt 4" in cause.next_steps[0]


def test_it_is_suspended(world: World) -> None:
    world.submit()
    world.until_phase("running")
    world.jobs.stop("clicks")
    world.until_phase("stopped")
    assert world.cause().name == "suspended"


def test_the_scheduler_finds_no_node_for_pods_that_the_operator_did_not_hold(world: World) -> None:
    world.runner.run(world.scene.end("kubelet"))
    world.scene._tasks["kubelet"] = world.runner.run(_asleep())
    world.submit(scheduling=SchedulingSpec(fit=FitPolicy.OFF))
    world.until(lambda: len(world.scene.pods()) == 3)
    message = "0/2 nodes are available: 2 Insufficient cpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    for name in world.scene.pods():
        world.cluster.change(kinds.PODS, name, status={"phase": "Pending", "conditions": [condition]})
    cause = world.cause()
    assert cause.name == "unschedulable"
    assert cause.evidence[0].text == f"ps-0, worker-0, worker-1: {message}"


async def started(world: World) -> None:
    world.scene.start_operator()


async def _asleep() -> asyncio.Task[None]:
    return asyncio.create_task(asyncio.sleep(3600))


def test_a_node_does_not_answer(world: World) -> None:
    world.submit()
    world.until_phase("running")
    pods = world.cluster.of_kind(kinds.PODS)
    host = pods["clicks-worker-0-1"]["spec"]["nodeName"]
    world.scene.kubelet.dead.add(host)
    silence(world.cluster, host, time.time() - 30)
    found = world.why()
    assert found.causes[0].name == "node-lost"
    assert f"node {host} does not answer" in found.causes[0].evidence[0].text


def lease(renewed: float, holder: str = "another-operator") -> dict[str, Any]:
    spec = {"holderIdentity": holder, "renewTime": times.micro_text(renewed)}
    return {"metadata": {"name": "paceline-operator", "namespace": "paceline"}, "spec": spec}


def test_no_operator_runs(world: World) -> None:
    world.submit()
    world.until_phase("running")
    world.runner.run(world.scene.end("operator"))
    world.runner.run(world.cluster.create(kinds.LEASES, lease(time.time())))
    assert world.why().causes == ()
    old = {
        **lease(time.time() - 600),
        "metadata": world.cluster.of_kind(kinds.LEASES)["paceline-operator"]["metadata"],
    }
    world.cluster.change(kinds.LEASES, "paceline-operator", "paceline", **old)
    cause = world.cause()
    assert cause.name == "no-operator"
    assert cause.evidence[0].text == "no operator renews the lease paceline/paceline-operator"


def test_a_job_that_no_operator_has_looked_at(world: World) -> None:
    world.runner.run(world.scene.end("operator"))
    world.submit()
    assert world.why().causes == ()
    late = dataclasses.replace(world.jobs, clock=lambda: time.time() + 60)
    (cause,) = recordings.explain(late, "clicks")[1].causes
    assert cause.name == "no-operator"


def test_what_may_not_be_looked_at_is_said_and_no_more(world: World) -> None:
    world.submit(name="first", workers=6)
    world.until_phase("running", "first")
    world.submit(name="second", workers=6)
    held(world, "second")

    def forbid(verb: str, plural: str, name: str) -> None:
        if plural in ("nodes", "leases", "events"):
            raise ClusterError(f"{plural} is forbidden", code=403, reason="Forbidden")

    world.runner.run(world.scene.end("operator"))
    world.cluster.trouble = forbid
    situation = world.jobs
    with pytest.raises(ClusterError):
        situation.events("second")
    found = world.why("second")
    assert [each.partition(":")[0] for each in found.unknown] == [
        "what was told of it", "whether it fits", "whether its nodes answer",
        "whether an operator holds the lease", "what was told of its pods",
    ]  # fmt: skip
    assert found.causes == ()


def test_a_preempted_pod_is_known_by_its_event(world: World) -> None:
    world.submit()
    world.until_phase("running")
    about = {"kind": "Pod", "name": "clicks-worker-0-1", "namespace": "default"}
    made = {
        "metadata": {"name": "p", "namespace": "default", "labels": {labels.MANAGED_BY: "no"}},
        "involvedObject": about, "reason": "Preempted", "message": "Preempted by ads/x on node n0",
        "lastTimestamp": times.text(time.time()),
    }  # fmt: skip
    world.runner.run(world.cluster.create(kinds.EVENTS, made))
    world.cluster.remove(kinds.PODS, "clicks-worker-0-1")
    world.until(lambda: "clicks-worker-0-2" in world.scene.pods())
    cause = world.cause()
    assert cause.name == "preempted"
