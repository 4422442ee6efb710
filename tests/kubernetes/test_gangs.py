"""Gangs of the scheduler of Kubernetes itself (GenericWorkload): a real one, nodes that run nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from support.operator_scenes import job
from support.queued_jobs import (
    JOB_PODS,
    begin_again,
    bound,
    priority_class,
    queue_rights,
    until_each_ran,
    why,
)
from support.real_clusters import (
    NAMESPACE,
    OperatorProcess,
    get,
    kubectl,
    objects,
    status,
    submit,
    until,
    until_phase,
)

from paceline.engines.kubernetes import kinds
from paceline.model.jobs.job_specs import FitPolicy, SchedulingSpec

LOW, HIGH = "gang-low", "gang-high"


@pytest.fixture(scope="module", autouse=True)
def gangs(upstream: None) -> Iterator[None]:
    served = kubectl("api-resources", "--api-group=scheduling.k8s.io", "--output=name")
    if "podgroups.scheduling.k8s.io" not in served:
        pytest.skip("the scheduler of this cluster knows no gangs (make e2e-queues)")
    with queue_rights(priority_class(LOW, 10), priority_class(HIGH, 1000)):
        yield


def cores_of_a_node() -> float:
    (first, *_) = objects(kinds.NODES, "paceline.dev/hollow")
    return float(first["status"]["allocatable"]["cpu"])


def submit_gang(name: str, priority: str = LOW) -> None:
    """Submit a job each of whose pods takes a node."""
    scheduling = SchedulingSpec(fit=FitPolicy.GANG, priority_class=priority)
    made = job(name, scheduling=scheduling, termination_grace_seconds=1.0)
    roles = tuple(dataclasses.replace(each, cpu_cores=cores_of_a_node()) for each in made.roles)
    submit(dataclasses.replace(made, roles=roles))


def is_scheduled(name: str) -> bool:
    group = get(kinds.GANGS, name) or {}
    conditions = (group.get("status") or {}).get("conditions") or ()
    return any(
        each["type"] == "PodGroupInitiallyScheduled" and each["status"] == "True" for each in conditions
    )


@pytest.fixture
def rooms() -> Iterator[int]:
    """How many gangs fit, with nodes left over for a part of another one."""
    nodes = objects(kinds.NODES, "paceline.dev/hollow")
    spare = len(nodes) % JOB_PODS
    if spare == 0:
        kubectl("cordon", nodes[0]["metadata"]["name"])
    yield (len(nodes) - (spare == 0)) // JOB_PODS
    if spare == 0:
        kubectl("uncordon", nodes[0]["metadata"]["name"])


def test_of_many_gangs_each_runs_whole_and_none_in_part(operator: OperatorProcess, rooms: int) -> None:
    names = [f"gang-{number:02}" for number in range(4 * rooms)]
    for name in names:
        submit_gang(name)

    def check(counts: dict[str, int]) -> None:
        assert all(is_scheduled(name) or get(kinds.GANGS, name) is None for name in counts), counts

    until_each_ran(names, check)


def causes(name: str) -> list[str]:
    return [each["name"] for each in why(name)["causes"]]


def test_a_gang_that_waits_says_what_the_scheduler_says(operator: OperatorProcess, rooms: int) -> None:
    for number in range(rooms):
        submit_gang(f"runs-{number}")
    for number in range(rooms):
        until_phase(f"runs-{number}", "running")
    submit_gang("waits")
    until(lambda: causes("waits") == ["unschedulable"], lambda: why("waits"))
    assert bound().get("waits", 0) == 0


def test_a_gang_makes_room_as_a_whole_and_comes_back(operator: OperatorProcess, rooms: int) -> None:
    for number in range(rooms):
        submit_gang(f"low-{number}")
    for number in range(rooms):
        until_phase(f"low-{number}", "running")
    submit_gang("urgent", HIGH)
    until_phase("urgent", "running")
    until(lambda: sum(count == 0 for count in of_low(rooms).values()) == 1, lambda: of_low(rooms))
    (out,) = [name for name, count in of_low(rooms).items() if count == 0]
    until(lambda: status(out)["phase"] == "restarting", lambda: status(out))
    kubectl("delete", "tj", "urgent", "-n", NAMESPACE)
    until_phase(out, "running")
    assert {each["restarts"] for each in status(out)["replicas"]} == {0}


def of_low(rooms: int) -> dict[str, int]:
    counts = bound()
    return {f"low-{number}": counts.get(f"low-{number}", 0) for number in range(rooms)}


def test_a_job_that_begins_again_with_more_workers_has_a_group_of_that_size(
    operator: OperatorProcess, rooms: int
) -> None:
    submit_gang("grows")
    until_phase("grows", "running")
    begin_again("grows", workers=4)
    until_phase("grows", "running")
    group = get(kinds.GANGS, "grows")
    assert group is not None
    assert group["spec"]["schedulingPolicy"]["gang"]["minCount"] == 5
