"""Jobs in queues of Kueue: its own controllers on a real API server, nodes that run nothing."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.clusters import apply
from support.queued_jobs import (
    JOB_CORES,
    JOB_PODS,
    complete,
    delete,
    in_queue,
    priority_class,
    queue_rights,
    set_phase,
    submit_a_hundred,
    submit_to,
    until_each_ran,
    until_it_waits,
    why,
)
from support.real_clusters import (
    NAMESPACE,
    OperatorProcess,
    change,
    found,
    kubectl,
    objects,
    pod_names,
    pods,
    status,
    until,
    until_phase,
)

from paceline.engines.kubernetes import kinds
from paceline.model.jobs.placements import PodPlacement, Toleration
from paceline.rendering import kueue

API = "kueue.x-k8s.io/v1beta2"
LOW, HIGH = "low", "high"


@pytest.fixture(scope="module", autouse=True)
def of_administrators(upstream: None) -> Iterator[None]:
    """What the administrator of a cluster makes once: rights, a flavor, priorities."""
    if kubectl("get", "namespace", "kueue-system", "--ignore-not-found") == "":
        pytest.skip("Kueue is not on this cluster (make e2e-queues)")
    flavor = {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "any"}}
    with queue_rights(flavor, priority_class(LOW, 10), priority_class(HIGH, 1000)):
        yield


def queue(name: str, cores: int, **more: Any) -> list[dict[str, Any]]:
    """Return a queue of this namespace, and the quota that is its own."""
    resources = [{"name": "cpu", "nominalQuota": str(cores)}]
    spec = {
        "namespaceSelector": {},
        "resourceGroups": [
            {"coveredResources": ["cpu"], "flavors": [{"name": "any", "resources": resources}]}
        ],
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        **more,
    }
    of_cluster = f"{NAMESPACE}-{name}"
    return [
        {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": of_cluster}, "spec": spec},
        {
            "apiVersion": API, "kind": "LocalQueue", "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"clusterQueue": of_cluster},
        },
    ]  # fmt: skip


@pytest.fixture
def queues(request: pytest.FixtureRequest) -> Iterator[None]:
    """The queues that a test asks for by its parameter; they go when the jobs in them are gone."""
    made = list(itertools.chain.from_iterable(request.param))
    apply(made)
    yield
    kubectl("delete", "trainingjobs", "--all", "-n", NAMESPACE, "--wait=false")
    delete(made)


def with_queues(*made: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("queues", [made], indirect=True, ids=[""])


def until_it_waits_again(name: str) -> None:
    """Wait until a job says that its queue took its pods away, and for whom."""
    until(
        lambda: "was let in before, lost its pods" in (in_queue(name) or {}).get("what", ""),
        lambda: why(name),
    )
    (taken,) = {each["name"] for each in why(name)["causes"]} - {"in-queue"}
    assert taken == "preempted"


def is_admitted(one: dict[str, Any]) -> bool:
    conditions = (one.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Admitted" and each["status"] == "True" for each in conditions)


@with_queues(queue("night", 2 * JOB_CORES))
def test_a_job_that_waits_says_why_and_where_it_stands(queues: None, operator: OperatorProcess) -> None:
    for name in ("first", "second"):
        submit_to("night", name)
        until_phase(name, "running")
    submit_to("night", "third")
    until_it_waits("third", "insufficient unused quota for cpu")
    submit_to("night", "fourth")
    # Kueue says nothing of a job that is not at the head of its queue.
    fourth = until_it_waits("fourth", "before it wait third")
    third = in_queue("third")
    assert third is not None
    assert third["what"] == "It waits in the queue night of Kueue, at place 1 of 2."
    assert third["next_steps"][:2] == [
        "it begins when so much is free in its queue; request less, and it begins sooner",
        "wait until one has ended, or paceline stop first",
    ]
    assert fourth["what"] == "It waits in the queue night of Kueue, at place 2 of 2."
    assert [each["text"] for each in fourth["evidence"]][-1] == "let in are first, second"
    assert {each["status"]["phase"] for each in pods("third")} == {"Pending"}
    assert status("third")["message"] == "3 pods wait for the queue night (paceline why says more)"
    kubectl("delete", "tj", "first", "-n", NAMESPACE)
    until_phase("third", "running")
    assert in_queue("third") is None


@with_queues(queue("night", 2))
def test_a_job_that_is_larger_than_its_queue_is_told_so(queues: None, operator: OperatorProcess) -> None:
    submit_to("night", "large")
    cause = until_it_waits("large", "insufficient quota")
    assert cause["next_steps"][0].startswith("it never begins as it is")


@with_queues(queue("night", 10 * JOB_CORES + 1))
def test_of_a_hundred_gangs_each_runs_whole_and_none_in_part(queues: None, operator: OperatorProcess) -> None:
    """The quota has room for ten, and for one replica of an eleventh; the operator ends in the middle."""

    def check(counts: dict[str, int]) -> None:
        admitted = {each["metadata"]["name"]: is_admitted(each) for each in objects(kinds.WORKLOADS)}
        assert all(admitted.get(name, True) for name in counts), (counts, admitted)
        assert sum(counts.values()) <= 10 * JOB_CORES + 1

    until_each_ran(submit_a_hundred("night", operator), check)


@with_queues(queue("night", 2 * JOB_CORES))
def test_a_job_that_has_to_make_room_waits_and_runs_again(queues: None, operator: OperatorProcess) -> None:
    for name in ("one", "two"):
        submit_to("night", name, LOW)
        until_phase(name, "running")
    submit_to("night", "urgent", HIGH, workers=5)
    until_phase("urgent", "running")
    for name in ("one", "two"):
        until_it_waits_again(name)
        until(lambda name=name: len(pods(name)) == JOB_PODS, lambda name=name: pods(name))  # type: ignore[misc]
    kubectl("delete", "tj", "urgent", "-n", NAMESPACE)
    for name in ("one", "two"):
        until_phase(name, "running")
        assert {each["restarts"] for each in status(name)["replicas"]} == {0}
        assert min(each["attempt"] for each in status(name)["replicas"]) >= 2


SHARED = {"cohortName": "e2e"}


@with_queues(queue("night", JOB_CORES, **SHARED), queue("day", JOB_CORES, **SHARED))
def test_what_a_queue_borrows_it_gives_back(queues: None, operator: OperatorProcess) -> None:
    for name in ("own", "borrowed"):
        submit_to("night", name)
        until_phase(name, "running")
    submit_to("day", "owner")
    until_phase("owner", "running")
    waiting = [name for name in ("own", "borrowed") if in_queue(name) is not None]
    assert len(waiting) == 1
    until_it_waits_again(waiting[0])


@with_queues(queue("night", JOB_CORES))
def test_a_job_that_has_ended_holds_no_quota(queues: None, operator: OperatorProcess) -> None:
    """Its servers never complete by themselves: the operator ends them when the workers have completed."""
    submit_to("night", "done")
    until_phase("done", "running")
    submit_to("night", "next")
    until_it_waits("next", "insufficient unused quota")
    complete("done")
    until_phase("done", "succeeded")
    until_phase("next", "running")
    assert all(not each["metadata"].get("deletionTimestamp") for each in pods("done"))


@with_queues(queue("night", JOB_CORES))
def test_a_job_that_waits_can_be_stopped(queues: None, operator: OperatorProcess) -> None:
    """Kueue keeps its pods, which have no node, and so never end by themselves."""
    submit_to("night", "first")
    until_phase("first", "running")
    submit_to("night", "second")
    until_it_waits("second", "insufficient unused quota")
    change("second", suspend=True)
    until_phase("second", "stopped")
    until(lambda: pods("second") == [], lambda: pods("second"))


@pytest.fixture
def kept_node() -> Iterator[str]:
    """A node whose pods are kept by their finalizers, as on real nodes; those of KWOK's nodes are not."""
    name = f"{NAMESPACE}-kept"
    node = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {KEPT: "true"}},
        "spec": {"taints": [{"key": KEPT, "effect": "NoSchedule"}]},
        "status": {
            "capacity": {"cpu": "80", "memory": "256Gi", "pods": "110"},
            "allocatable": {"cpu": "80", "memory": "256Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Tested"}],
        },
    }  # fmt: skip
    apply([node])
    kubectl("patch", "node", name, "--subresource=status", "-p", json.dumps({"status": node["status"]}))
    until(lambda: taints(name) == {KEPT}, lambda: taints(name))
    yield name
    kubectl("delete", "trainingjobs", "--all", "-n", NAMESPACE, "--wait=false")
    until(lambda: is_attended(name) and name not in nodes_of_pods(), nodes_of_pods)
    kubectl("delete", "node", name)


def taints(node: str) -> set[str]:
    """Return the taints of a node: a new one is not ready until a controller has seen its status."""
    return {each["key"] for each in found("node", node)["spec"].get("taints") or ()}


KEPT = "paceline.dev/kept"
PLACED = PodPlacement(
    node_selector={KEPT: "true"}, tolerations=(Toleration(key=KEPT, operator="Exists", effect="NoSchedule"),)
)


def nodes_of_pods() -> set[str]:
    return {each["spec"].get("nodeName", "") for each in objects(kinds.PODS, "paceline.dev/job")}


def is_attended(node: str) -> bool:
    """Do for the pods of a node what a kubelet does: they run, and end when they are asked to."""
    for pod in objects(kinds.PODS, "paceline.dev/job"):
        metadata, phase = pod["metadata"], pod["status"]["phase"]
        if pod["spec"].get("nodeName") != node:
            continue
        own = ("pod", metadata["name"], "-n", NAMESPACE)
        if metadata.get("deletionTimestamp"):
            if phase == "Running":
                set_phase(own, "Failed", {"terminated": {"exitCode": 143, "reason": "Error"}})
            kubectl("delete", *own, "--force", "--grace-period=0", "--wait=false", "--ignore-not-found")
        elif phase == "Pending":
            set_phase(own, "Running", {"running": {}})
    return True


@with_queues(queue("night", JOB_CORES))
@pytest.mark.parametrize("end", ["completes", "is deleted"])
def test_what_kueue_keeps_of_a_job_it_gives_back(
    queues: None, operator: OperatorProcess, kept_node: str, end: str
) -> None:
    """Kueue keeps each pod that ends for one that replaces it, until it is told that none will come."""

    def attended(holds: Callable[[], bool]) -> bool:
        return is_attended(kept_node) and holds()

    submit_to("night", "first", placement=PLACED)
    until(lambda: attended(lambda: status("first").get("phase") == "running"), lambda: status("first"))
    submit_to("night", "next")
    until_it_waits("next", "insufficient unused quota")
    if end == "completes":
        complete("first")
        until(lambda: attended(lambda: status("first").get("phase") == "succeeded"), lambda: status("first"))
    else:
        kubectl("delete", "tj", "first", "-n", NAMESPACE, "--wait=false")
    until(lambda: attended(lambda: status("next").get("phase") == "running"), lambda: pods("first"))
    left = ["worker-0", "worker-1"] if end == "completes" else []
    names = [f"first-{each}-1" for each in left]
    until(lambda: attended(lambda: pod_names("first") == names), lambda: pods("first"))


@with_queues(queue("night", JOB_CORES))
def test_a_job_that_is_resumed_goes_through_its_queue_again(
    queues: None, operator: OperatorProcess, kept_node: str
) -> None:
    """Its first group has ended, and takes no pods any more."""

    def until_attended(phase: str) -> None:
        until(
            lambda: is_attended(kept_node) and status("again").get("phase") == phase, lambda: status("again")
        )

    submit_to("night", "again", placement=PLACED)
    until_attended("running")
    for number in (1, 2):
        change("again", suspend=True)
        until_attended("stopped")
        change("again", suspend=False)
        until_attended("running")
        groups = {each["metadata"]["labels"][kueue.GROUP] for each in pods("again") if runs(each)}
        assert groups == {f"again.{number}"}


def runs(pod: dict[str, Any]) -> bool:
    return bool(pod["status"]["phase"] == "Running")


@with_queues(queue("night", 2 * JOB_CORES))
def test_its_number_of_workers_stays(queues: None, operator: OperatorProcess) -> None:
    submit_to("night", "fixed")
    until_phase("fixed", "running")
    kubectl("scale", "tj/fixed", "--replicas=3", "-n", NAMESPACE)
    until(
        lambda: "one group in the queue night" in status("fixed").get("message", ""), lambda: status("fixed")
    )
    assert len(pods("fixed")) == JOB_PODS
