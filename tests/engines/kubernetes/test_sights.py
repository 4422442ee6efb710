"""Pods as the API has them, and what they say of an attempt."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from paceline.control.reconciliations import PodState, Stage
from paceline.engines.kubernetes import pod_states
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.statuses import ExitKind, ExitReason
from paceline.model.roles import ReplicaId, Role
from paceline.rendering import pods
from paceline.rendering.surroundings import Surroundings

ADS = Surroundings(namespace="ads")

CREATED = 1_800_000_000.0
WORKER = ReplicaId(Role.WORKER, 3)


def pod(status: dict[str, Any], node: str | None = "n1", **metadata: Any) -> dict[str, Any]:
    """A pod as it is rendered, with what the API server and the kubelet add."""
    spec = JobSpec(name="clicks", image="i", roles=(RoleSpec(role=Role.WORKER, replicas=4),))
    made = pods.pod(spec, WORKER, ADS, attempt=2)
    made["metadata"].update({"creationTimestamp": "2027-01-15T08:00:00Z", **metadata})
    made["spec"]["nodeName"] = node
    return {**made, "status": status}


def container(**state: Any) -> dict[str, Any]:
    return {"phase": "Running", "containerStatuses": [{"name": "training", "state": state}]}


def bringing(**state: Any) -> dict[str, Any]:
    waiting = {"name": "training", "state": {"waiting": {"reason": "PodInitializing"}}}
    return {
        "phase": "Pending",
        "initContainerStatuses": [{"name": "agent", "state": state}],
        "containerStatuses": [waiting],
    }


def fetching(**terminated: Any) -> dict[str, Any]:
    """The agent is there, and the container that fetches the code has ended."""
    brought = {"name": "agent", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    fetched = {"name": "code", "state": {"terminated": terminated}}
    phase = "Failed" if terminated["exitCode"] else "Pending"
    return {"phase": phase, "initContainerStatuses": [brought, fetched]}


def seen(made: dict[str, Any], *, now: float = CREATED, silent: dict[str, float] | None = None) -> PodState:
    (found,) = pod_states.of([made], silent=silent or {}, now=now)
    assert (found.replica, found.attempt) == (WORKER, 2)
    return found


@pytest.mark.parametrize(
    ("status", "stage"),
    [
        ({}, Stage.COMING),
        ({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}, Stage.COMING),
        (bringing(running={"startedAt": "2027-01-15T08:00:01Z"}), Stage.COMING),
        (container(waiting={"reason": "ContainerCreating"}), Stage.COMING),
        (container(running={"startedAt": "2027-01-15T08:00:01Z"}), Stage.RUNNING),
    ],
)
def test_stages(status: dict[str, Any], stage: Stage) -> None:
    assert seen(pod(status)) == PodState(replica=WORKER, attempt=2, stage=stage)
    assert seen(pod(status, deletionTimestamp="2027-01-15T08:01:00Z")).is_leaving


AGENTS = {"kind": "orphaned", "code": 143, "signal": 15, "message": "no supervisor for 60 s", "at": 1.0}


@pytest.mark.parametrize(
    ("terminated", "reason"),
    [
        ({"exitCode": 0, "reason": "Completed"}, ExitReason(kind=ExitKind.COMPLETED, code=0)),
        ({"exitCode": 3, "reason": "Error"}, ExitReason(kind=ExitKind.ERROR, code=3)),
        ({"exitCode": 137}, ExitReason(kind=ExitKind.SIGNAL, code=137, signal=9)),
        ({"exitCode": 255}, ExitReason(kind=ExitKind.ERROR, code=255)),
        ({"exitCode": 247}, ExitReason(kind=ExitKind.ERROR, code=247)),
        (
            {"exitCode": 128, "reason": "StartError", "message": "no such file"},
            ExitReason(kind=ExitKind.LAUNCH_FAILED, code=128, message="no such file"),
        ),
        (
            {"exitCode": 137, "reason": "OOMKilled", "message": json.dumps(AGENTS)},
            ExitReason(kind=ExitKind.OUT_OF_MEMORY, code=137, message="the container's limit was reached"),
        ),
        (
            {"exitCode": 143, "reason": "Error", "message": json.dumps(AGENTS) + "\n"},
            ExitReason(kind=ExitKind.ORPHANED, code=143, signal=15, message="no supervisor for 60 s"),
        ),
    ],
)
def test_why_a_container_ended(terminated: dict[str, Any], reason: ExitReason) -> None:
    found = seen(pod(container(terminated=terminated)))
    assert (found.stage, found.reason) == (Stage.ENDED, reason)


fields = st.sampled_from(["kind", "code", "signal", "message"])
anything = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(fields, inner)
)


@given(st.text() | anything.map(json.dumps))
def test_any_last_word_is_borne(message: str) -> None:
    assert pod_states.exit_reason({"exitCode": 1, "message": message}).kind in ExitKind


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (
            {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."},
            ExitKind.LOST,
            "Evicted: The node was low on memory.",
        ),
        ({"phase": "Failed"}, ExitKind.LOST, "its pod failed"),
        (
            {**bringing(terminated={"exitCode": 1, "reason": "Error"}), "phase": "Failed"},
            ExitKind.LAUNCH_FAILED,
            "the agent could not be brought: Error",
        ),
        (
            {**bringing(terminated={"exitCode": 137, "reason": "OOMKilled"}), "phase": "Failed"},
            ExitKind.OUT_OF_MEMORY,
            "the container's limit was reached while the agent was brought: it is too small to start",
        ),
        (
            fetching(
                exitCode=1, reason="Error", message=json.dumps({"error": "https://h/x: the server says 404"})
            ),
            ExitKind.LAUNCH_FAILED,
            "the code could not be brought: https://h/x: the server says 404",
        ),
        (
            fetching(exitCode=1, reason="Error", message="Traceback:\n  File\nMemoryError: too much\n"),
            ExitKind.LAUNCH_FAILED,
            "the code could not be brought: MemoryError: too much",
        ),
        (
            fetching(exitCode=137, reason="OOMKilled", message=""),
            ExitKind.LAUNCH_FAILED,
            "the code could not be brought: OOMKilled",
        ),
    ],
)
def test_pods_that_end_without_a_word(status: dict[str, Any], kind: ExitKind, message: str) -> None:
    reason = seen(pod(status)).reason
    assert reason is not None
    assert (reason.kind, reason.message) == (kind, message)


def test_a_silent_node_is_lost_after_a_while() -> None:
    running = pod(container(running={}), deletionTimestamp="2027-01-15T08:01:00Z")
    assert seen(running, now=CREATED + 59, silent={"n1": CREATED}).stage is Stage.RUNNING
    found = seen(running, now=CREATED + 61, silent={"n1": CREATED})
    assert found.stage is Stage.ENDED
    assert found.reason == ExitReason(kind=ExitKind.LOST, message="node n1 has not answered for 61 s")
    assert seen(running, now=CREATED + 61, silent={"n2": CREATED}).stage is Stage.RUNNING


@pytest.mark.parametrize("where", [container, bringing])
def test_an_image_that_never_comes_ends_with_its_reason(where: Any) -> None:
    made = pod(where(waiting={"reason": "ImagePullBackOff", "message": "no such image: team/clicks:1"}))
    assert seen(made, now=CREATED + 100).stage is Stage.COMING
    found = seen(made, now=CREATED + 121)
    assert found.stage is Stage.ENDED
    message = "ImagePullBackOff: no such image: team/clicks:1"
    assert found.reason == ExitReason(kind=ExitKind.LAUNCH_FAILED, message=message)


def test_the_time_without_a_node_does_not_count_against_an_image() -> None:
    """A pod may wait in a queue for hours; its first pull of the image may fail once."""
    status = container(waiting={"reason": "ErrImagePull", "message": "the registry is busy"})
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2027-01-15T09:00:00Z"}
    made = pod({**status, "conditions": [placed]})
    assert seen(made, now=CREATED + 3700).stage is Stage.COMING
    assert seen(made, now=CREATED + 3721).stage is Stage.ENDED


def test_a_pod_that_is_deleted_before_it_has_a_node_has_ended() -> None:
    leaving = {"deletionTimestamp": "2027-01-15T08:00:05Z", "finalizers": ["kueue.x-k8s.io/managed"]}
    found = seen(pod({"phase": "Pending"}, node=None, **leaving))
    assert (found.stage, found.reason, found.is_leaving) == (Stage.ENDED, None, True)
    assert seen(pod({"phase": "Pending"}, **leaving)).stage is Stage.COMING


def test_a_container_that_can_never_be_made_is_no_moment_s_trouble() -> None:
    waiting = {"reason": "InvalidImageName", "message": "a b"}
    reason = seen(pod(container(waiting=waiting)), now=CREATED + 121).reason
    assert reason is not None
    assert reason.is_never_started


def test_an_image_that_does_not_come_for_the_code_ends_with_its_reason() -> None:
    status = bringing(terminated={"exitCode": 0})
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    status["initContainerStatuses"].append({"name": "code", "state": waiting})
    found = seen(pod(status), now=CREATED + 121)
    assert found.reason is not None
    assert found.reason.message == "ErrImagePull: no such image"


def test_what_fetchers_said_is_known_once() -> None:
    words = [{"notes": ["code: commit a"]}, {"notes": ["code: commit b", "code: commit a"]}, {"error": "x"}]
    ended = [fetching(exitCode=0, message=json.dumps(word)) for word in words]
    others = [fetching(exitCode=0, message=text) for text in ("", "[]", "{}", '{"notes": 3}')]
    made = [pod(status) for status in (*ended, *others, container(running={}), {})]
    assert pod_states.notes(made) == ("code: commit a", "code: commit b")


def test_other_pods_are_passed_over() -> None:
    other = {"metadata": {"name": "web", "labels": {"paceline.dev/role": "web"}}}
    assert pod_states.of([other, {"metadata": {"name": "bare"}}], silent={}, now=0.0) == []


def disruption(kind: str, reason: str, message: str = "why", status: str = "True") -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status, "reason": reason, "message": message}]}


PREEMPTED = disruption("DisruptionTarget", "PreemptionByScheduler")
BY_QUEUE = disruption("TerminationTarget", "WorkloadEvicted", "Preempted to accommodate a workload")


@pytest.mark.parametrize("code", [0, 1, 143])
@pytest.mark.parametrize("told", [PREEMPTED, BY_QUEUE], ids=["by the scheduler", "by a queue"])
def test_an_end_that_the_cluster_decided_is_not_its_own(told: dict[str, Any], code: int) -> None:
    """A script that handles SIGTERM ends with 0, and has not completed."""
    found = seen(pod({**container(terminated={"exitCode": code}), **told}))
    assert found.stage is Stage.ENDED
    assert found.reason is not None
    assert found.reason.kind is ExitKind.DISRUPTED
    assert found.reason.message.startswith(told["conditions"][0]["reason"])


@pytest.mark.parametrize(
    "told",
    [
        disruption("DisruptionTarget", "TerminationByKubelet"),
        disruption("DisruptionTarget", "PreemptionByScheduler", status="False"),
        disruption("Ready", "PreemptionByScheduler"),
    ],
    ids=["its node was full", "it is over", "another condition"],
)
def test_other_ends_are_its_own(told: dict[str, Any]) -> None:
    found = seen(pod({**container(terminated={"exitCode": 1}), **told}))
    assert found.reason == ExitReason(kind=ExitKind.ERROR, code=1)


def last(made: dict[str, Any], *present: dict[str, Any]) -> list[PodState]:
    return pod_states.of(present, gone=[made], silent={}, now=CREATED)


def test_a_deleted_pod_counts_if_it_says_how_it_ended() -> None:
    assert last(pod(container(running={}))) == []
    (ended,) = last(pod(container(terminated={"exitCode": 3})))
    assert (ended.stage, ended.reason) == (Stage.ENDED, ExitReason(kind=ExitKind.ERROR, code=3))
    (taken,) = last(pod({**container(running={}), **BY_QUEUE}))
    assert taken.stage is Stage.ENDED
    assert taken.reason is not None
    assert taken.reason.kind is ExitKind.DISRUPTED
    # The same attempt was launched again.
    (there,) = last(pod({**container(running={}), **BY_QUEUE}), pod(container(running={})))
    assert there.stage is Stage.RUNNING
