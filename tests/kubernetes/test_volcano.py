"""Jobs in queues of Volcano: its own scheduler on a real API server, nodes that run nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.clusters import apply
from support.queued_jobs import (
    JOB_CORES,
    JOB_PODS,
    begin_again,
    bound,
    complete,
    delete,
    in_queue,
    queue_rights,
    submit_a_hundred,
    submit_to,
    until_each_ran,
    until_it_waits,
)
from support.real_clusters import (
    NAMESPACE,
    OperatorProcess,
    found,
    kubectl,
    objects,
    status,
    until,
    until_phase,
)

from paceline.engines.kubernetes import kinds

QUEUE = f"{NAMESPACE}-night"


@pytest.fixture(scope="module", autouse=True)
def volcano(upstream: None) -> Iterator[None]:
    if kubectl("get", "namespace", "volcano-system", "--ignore-not-found") == "":
        pytest.skip("Volcano is not on this cluster (make e2e-queues)")
    with queue_rights():
        yield


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> Iterator[str]:
    """A queue with so many cores; it goes when the jobs in it are gone."""
    made: list[dict[str, Any]] = [
        {
            "apiVersion": kinds.VOLCANO_QUEUES.api_version, "kind": "Queue", "metadata": {"name": QUEUE},
            "spec": {"weight": 1, "capability": {"cpu": str(request.param)}},
        }
    ]  # fmt: skip
    apply(made)
    until(lambda: found("queue.scheduling.volcano.sh", QUEUE).get("status", {}).get("state") == "Open", str)
    yield QUEUE
    kubectl("delete", "trainingjobs", "--all", "-n", NAMESPACE, "--wait=false")
    until(lambda: objects(kinds.PODS, "paceline.dev/job") == [], lambda: "its pods stay")
    delete(made)


def of_cores(cores: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("queue", [cores], indirect=True, ids=[""])


@of_cores(2 * JOB_CORES)
def test_a_job_that_waits_says_why_and_where_it_stands(queue: str, operator: OperatorProcess) -> None:
    for name in ("first", "second"):
        submit_to(queue, name)
        until_phase(name, "running")
    for name in ("third", "fourth"):
        submit_to(queue, name)
        until(lambda name=name: in_queue(name) is not None, lambda name=name: status(name))  # type: ignore[misc]
    fourth = in_queue("fourth")
    assert fourth is not None
    assert fourth["what"] == f"It waits in the queue {queue} of Volcano, at place 2 of 2."
    said = [each["text"] for each in fourth["evidence"]]
    assert said[-2:] == ["before it wait third", "let in are first, second"]
    kubectl("delete", "tj", "first", "-n", NAMESPACE)
    until_phase("third", "running")
    assert in_queue("third") is None


@of_cores(10 * JOB_CORES + 1)
def test_of_a_hundred_gangs_each_runs_whole_and_none_in_part(queue: str, operator: OperatorProcess) -> None:
    """The queue has room for ten, and for one replica of an eleventh; the operator ends in the middle."""

    def check(counts: dict[str, int]) -> None:
        assert sum(counts.values()) <= 10 * JOB_CORES + 1, counts

    until_each_ran(submit_a_hundred(queue, operator), check)


@of_cores(JOB_CORES + 2)
def test_a_gang_for_which_there_is_no_room_takes_none(queue: str, operator: OperatorProcess) -> None:
    submit_to(queue, "first")
    until_phase("first", "running")
    submit_to(queue, "second")
    until_it_waits("second", "")
    assert bound() == {"first": JOB_PODS}


@of_cores(JOB_CORES)
def test_a_job_that_has_ended_holds_no_quota(queue: str, operator: OperatorProcess) -> None:
    submit_to(queue, "done")
    until_phase("done", "running")
    submit_to(queue, "next")
    complete("done")
    until_phase("done", "succeeded")
    until_phase("next", "running")


@of_cores(2 * JOB_CORES)
def test_a_job_that_begins_again_with_more_workers_has_a_group_of_that_size(
    queue: str, operator: OperatorProcess
) -> None:
    submit_to(queue, "grows")
    until_phase("grows", "running")
    begin_again("grows", workers=4)
    until_phase("grows", "running")
    assert found("podgroup.scheduling.volcano.sh", "grows", "-n", NAMESPACE)["spec"]["minMember"] == 5
