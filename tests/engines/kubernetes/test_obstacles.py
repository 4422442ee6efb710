"""What pods and events say: as real API servers, schedulers and kubelets write it."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.engines.kubernetes import obstacles
from paceline.model.jobs.obstacles import ObstacleKind
from paceline.model.roles import ReplicaId, Role
from paceline.rendering import labels

W0 = ReplicaId(Role.WORKER, 0)
AT, SECONDS = "2027-01-15T08:00:00Z", 1800000000.0
NO_NODE = "0/2 nodes are available: 2 Insufficient cpu."


def pod(attempt: int = 1, *, node: str | None = None, **status: Any) -> dict[str, Any]:
    own = {labels.JOB: "clicks", labels.ROLE: "worker", labels.INDEX: "0", labels.ATTEMPT: str(attempt)}
    return {
        "metadata": {"name": f"clicks-worker-0-{attempt}", "labels": own},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": "Pending", **status},
    }


def unscheduled() -> dict[str, Any]:
    condition = {
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO_NODE,
        "lastTransitionTime": AT,
    }  # fmt: skip
    return pod(conditions=[condition])


def event(reason: str, message: str, name: str = "clicks-worker-0-1", **more: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "name": name, "namespace": "default"}
    return {"involvedObject": about, "reason": reason, "message": message, "lastTimestamp": AT, **more}


def test_a_pod_that_finds_no_node_is_counted_by_its_event() -> None:
    (alone,) = obstacles.read("clicks", [unscheduled()], [], {})
    assert (alone.kind, alone.message, alone.at, alone.count) == (
        ObstacleKind.UNSCHEDULABLE, NO_NODE, SECONDS, 1,
    )  # fmt: skip
    told = event("FailedScheduling", NO_NODE, count=7)
    (found,) = obstacles.read("clicks", [unscheduled()], [told], {})
    assert (found.replica, found.attempt, found.count) == (W0, 1, 7)


def test_a_pod_with_a_gate_is_held_back_and_not_without_a_node() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "blocked"}
    held = pod(conditions=[condition])
    held["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}, {"name": "acme.dev/budget"}]
    (found,) = obstacles.read("clicks", [held], [], {})
    assert (found.kind, found.replica) == (ObstacleKind.GATED, W0)
    assert found.message == "scheduling gates: kueue.x-k8s.io/admission, acme.dev/budget"


def test_a_job_says_how_many_of_its_pods_have_no_node_and_what_they_wait_for() -> None:
    gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "blocked"}
    held = pod(conditions=[gated])
    held["spec"]["schedulingGates"] = [{"name": "acme.dev/budget"}]
    more = "(paceline why says more)"
    assert obstacles.without_node([held, held], None) == f"2 pods wait for their scheduling gates {more}"
    assert obstacles.without_node([unscheduled()], None) == f"1 pod waits for a node {more}"
    assert obstacles.without_node([held, unscheduled()], "night") == f"2 pods wait for the queue night {more}"
    assert obstacles.without_node([pod(node="n0"), pod(phase="Running", node="n0")], "night") == ""


def test_events_of_the_new_api_count_in_a_series() -> None:
    series = {"count": 5, "lastObservedTime": "2027-01-15T08:00:00.000000Z"}
    told = event("FailedScheduling", NO_NODE, lastTimestamp=None, series=series)
    (found,) = obstacles.read("clicks", [unscheduled()], [told], {})
    assert (found.count, found.at) == (5, SECONDS)


def test_what_an_event_says_of_a_pod_that_runs_is_over() -> None:
    running = pod(phase="Running", node="n0")
    told = [
        event("FailedScheduling", NO_NODE),
        event("FailedMount", "timed out"),
        event("NodeNotReady", "Node is not ready"),
    ]
    assert obstacles.read("clicks", [running], told, {}) == []
    kinds_of = {each.kind for each in obstacles.read("clicks", [running], told, {"n0": 1.0})}
    assert kinds_of == {ObstacleKind.NODE_LOST}


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("ImagePullBackOff", "image"),
        ("ErrImagePull", "image"),
        ("CreateContainerConfigError", "configuration"),
        ("CrashLoopBackOff", "crash-loop"),
        ("ContainerCreating", "coming"),
    ],
)
@pytest.mark.parametrize("of", ["initContainerStatuses", "containerStatuses"])
def test_why_a_container_waits(reason: str, kind: str, of: str) -> None:
    waiting = {"waiting": {"reason": reason, "message": "in its words"}}
    (found,) = obstacles.read("clicks", [pod(**{of: [{"name": "x", "state": waiting}]})], [], {})
    assert (found.kind, found.message) == (ObstacleKind(kind), f"{reason}: in its words")


def test_a_pod_that_is_gone_is_known_by_its_name() -> None:
    told = [
        event("Preempted", "Preempted by ads/high on node n1", "clicks-worker-0-2"),
        event("Evicted", "The node was low on resource", "clicks-2-worker-0-1"),
        event("Evicted", "The node was low on resource", "other"),
        {**event("Preempted", "x"), "involvedObject": {"kind": "Node", "name": "clicks-worker-0-1"}},
    ]
    (found,) = obstacles.read("clicks", [], told, {})
    assert (found.kind, found.replica, found.attempt) == (ObstacleKind.PREEMPTED, W0, 2)


def test_pods_that_have_ended_or_are_no_replicas_say_nothing() -> None:
    stranger = {"metadata": {"name": "x"}, "status": unscheduled()["status"]}
    ended = {**unscheduled(), "status": {**unscheduled()["status"], "phase": "Failed"}}
    assert obstacles.read("clicks", [stranger, ended], [], {"n0": 1.0}) == []
