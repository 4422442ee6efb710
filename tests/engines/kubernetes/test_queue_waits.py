"""What Kueue and Volcano keep of jobs that wait: as these write it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.engines.kubernetes import queue_waits

AT, SECONDS = "2027-01-15T08:00:00Z", 1800000000.0
MORE = (
    "couldn't assign flavors to pod set 0: insufficient unused quota for cpu in flavor default, 2 more needed"
)
PREEMPTED = (
    "Preempted to accommodate a workload (UID: 1, JobUID: 2) due to prioritization in the ClusterQueue"
)


def condition(kind: str, status: str, message: str = "", at: str = AT) -> dict[str, str]:
    return {"type": kind, "status": status, "message": message, "reason": "Pending", "lastTransitionTime": at}


def workload(
    name: str, *conditions: dict[str, str], age: int = 0, priority: int | None = None, **spec: Any
) -> dict[str, Any]:
    made = {"queueName": "night", **({} if priority is None else {"priority": priority}), **spec}
    created = f"2027-01-15T07:{59 - age:02}:00Z"
    return {
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": made,
        "status": {"conditions": list(conditions)},
    }


WAITS = condition("QuotaReserved", "False", MORE)
IN = (condition("QuotaReserved", "True"), condition("Admitted", "True"))


def test_a_job_waits_in_kueue_with_its_words_and_its_place() -> None:
    others = [
        workload("older", WAITS, age=5),
        workload("urgent", WAITS, age=1, priority=10),
        workload("younger", WAITS),
        workload("runs", *IN, age=9),
        workload("over", *IN, condition("Finished", "True"), age=9),
        workload("elsewhere", WAITS, age=9, queueName="day"),
    ]
    found = queue_waits.in_kueue("clicks", "night", [*others, workload("clicks", WAITS, age=2)])
    assert found is not None
    assert (found.system, found.queue, found.reason, found.at) == ("Kueue", "night", MORE, SECONDS)
    assert (found.ahead, found.waiting, found.holders) == (("urgent", "older"), 4, ("runs",))
    assert not found.was_evicted


def test_a_job_whose_pods_were_taken_away_waits_again() -> None:
    evicted = condition("Evicted", "True", PREEMPTED, "2027-01-15T08:00:05Z")
    found = queue_waits.in_kueue("clicks", "night", [workload("clicks", WAITS, evicted)])
    assert found is not None
    assert (found.was_evicted, found.reason, found.at) == (True, f"{MORE}; {PREEMPTED}", SECONDS + 5)


def test_a_workload_that_is_not_active_says_so() -> None:
    found = queue_waits.in_kueue("clicks", "night", [workload("clicks", active=False)])
    assert found is not None
    assert "spec.active: false" in found.reason


@pytest.mark.parametrize("conditions", [IN, (*IN, condition("Finished", "True"))], ids=["runs", "is over"])
def test_a_job_that_was_let_in_does_not_wait(conditions: tuple[dict[str, str], ...]) -> None:
    assert queue_waits.in_kueue("clicks", "night", [workload("clicks", *conditions)]) is None


def test_the_job_that_another_kind_of_workload_stands_for_is_its_owner() -> None:
    theirs = workload("job-batch-1f2a", *IN)
    theirs["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "batch"}]
    resumed = workload("other-2", *IN)
    resumed["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "other-ps-0-3"}]
    foreign = workload("plain", *IN)
    foreign["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "plain-pod"}]
    found = queue_waits.in_kueue("clicks", "night", [theirs, resumed, foreign, workload("clicks", WAITS)])
    assert found is not None
    assert found.holders == ("batch", "other", "plain")


GANG = "3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable"


def group(name: str, phase: str, *conditions: dict[str, str], age: int = 0, **spec: Any) -> dict[str, Any]:
    created = f"2027-01-15T07:{59 - age:02}:00Z"
    return {
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {"queue": "night", **spec},
        "status": {"phase": phase, "conditions": list(conditions)},
    }


def test_a_job_waits_in_volcano_with_its_words_and_its_place() -> None:
    groups = [
        group("older", "Inqueue", age=5),
        group("runs", "Running", age=9),
        group("over", "Completed", age=9),
        group("clicks", "Pending", condition("Unschedulable", "True", GANG)),
    ]
    found = queue_waits.in_volcano("clicks", "night", groups)
    assert found is not None
    assert (found.system, found.reason, found.at) == ("Volcano", GANG, SECONDS)
    assert (found.ahead, found.waiting, found.holders) == (("older",), 2, ("runs",))
    assert queue_waits.in_volcano("runs", "night", groups) is None
    assert queue_waits.in_volcano("clicks", "day", groups) is None


FOREIGN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "status", "message"]), inner)
    ),
    max_leaves=8,
)


@given(message=FOREIGN, priority=FOREIGN)
def test_words_of_any_kind_are_read(message: Any, priority: Any) -> None:
    odd = workload("clicks", {"type": "QuotaReserved", "status": "False", "message": message})
    odd["spec"]["priority"] = priority
    found = queue_waits.in_kueue("clicks", "night", [odd])
    assert found is not None
    assert found.waiting == 1
