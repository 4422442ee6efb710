"""Whether a job waits in a queue of Kueue or Volcano, read from the objects in which these keep it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from paceline.engines.kubernetes import times
from paceline.engines.kubernetes.clusters import Object
from paceline.model.jobs.queue_waits import QueueWait
from paceline.model.roles import Role

#: See `labels.pod_name`.
_POD_NAME = re.compile(rf"(.{{1,253}})-(?:{'|'.join(Role)})-\d{{1,9}}-\d{{1,9}}")
#: A sort key of queues: first by priority, then by age.
_Order = tuple[int, float]


def in_kueue(group: str, queue: str, workloads: Iterable[Object]) -> QueueWait | None:
    """Return the wait of a job in a queue of Kueue; None: it does not wait there.

    Source: ``apis/kueue/v1beta2/workload_types.go``. The workload of a group of pods has the group's name.

    Args:
        group: the name of its group of pods.
        queue: the name of its queue.
        workloads: all workloads of the namespace.
    """
    queued = [one for one in workloads if (one.get("spec") or {}).get("queueName") == queue]
    workload = next((one for one in queued if one["metadata"]["name"] == group), None)
    if workload is None or not _waits_in_kueue(workload):
        return None
    conditions = _conditions(workload)
    evicted = conditions.get("Evicted", {})
    was_evicted = evicted.get("status") == "True"
    # Why it was evicted stays until it is admitted again; why it waits is said at each try.
    sayings = [conditions.get("QuotaReserved", {}), *([evicted] if was_evicted else [])]
    if not (workload.get("spec") or {}).get("active", True):
        sayings = [{"message": "its workload is not active (spec.active: false)"}]
    reasons = [str(each["message"]) for each in sayings if each.get("message")]
    return _wait(
        "Kueue", queue, workload, queued, _waits_in_kueue, _priority,
        reason="; ".join(dict.fromkeys(reasons)), at=_latest(sayings), was_evicted=was_evicted,
    )  # fmt: skip


def _waits_in_kueue(workload: Object) -> bool:
    conditions = _conditions(workload)
    return not any(conditions.get(kind, {}).get("status") == "True" for kind in ("Admitted", "Finished"))


def _priority(each: Object) -> int:
    priority = (each.get("spec") or {}).get("priority")
    return priority if isinstance(priority, int) else 0


def in_volcano(job: str, queue: str, groups: Iterable[Object]) -> QueueWait | None:
    """Return the wait of a job in a queue of Volcano; None: it does not wait there.

    Source: ``scheduling/v1beta1/types.go`` of volcano-sh/apis. A group says nothing of its priority in
    numbers, so groups are in the order of their age.

    Args:
        job: the name of the job, which is that of its PodGroup.
        queue: the name of its queue.
        groups: all PodGroups of the namespace.
    """
    queued = [each for each in groups if (each.get("spec") or {}).get("queue", "default") == queue]
    group = next((each for each in queued if each["metadata"]["name"] == job), None)
    if group is None or not _waits_in_volcano(group):
        return None
    sayings = [each for each in (_conditions(group).get("Unschedulable"),) if each is not None]
    reason = str(sayings[0].get("message") or sayings[0].get("reason") or "") if sayings else ""
    return _wait(
        "Volcano", queue, group, queued, _waits_in_volcano, lambda _: 0,
        reason=reason, at=_latest(sayings), was_evicted=False,
    )  # fmt: skip


def _waits_in_volcano(group: Object) -> bool:
    return (group.get("status") or {}).get("phase") in (None, "", "Pending", "Inqueue")


def _wait(
    system: str,
    queue: str,
    of_job: Object,
    queued: Sequence[Object],
    waits: Callable[[Object], bool],
    priority: Callable[[Object], int],
    *,
    reason: str,
    at: float | None,
    was_evicted: bool,
) -> QueueWait:
    def order(each: Object) -> _Order:
        return -priority(each), times.seconds(each["metadata"]["creationTimestamp"])

    waiting = sorted(filter(waits, queued), key=order)
    place = waiting.index(of_job)
    return QueueWait(
        system=system,
        queue=queue,
        reason=reason,
        at=at,
        ahead=tuple(_job_of(each) for each in waiting[:place]),
        waiting=len(waiting),
        holders=tuple(_job_of(each) for each in queued if not waits(each) and not _is_over(each)),
        was_evicted=was_evicted,
    )


def _is_over(each: Object) -> bool:
    phase = (each.get("status") or {}).get("phase")
    return phase == "Completed" or _conditions(each).get("Finished", {}).get("status") == "True"


def _job_of(each: Object) -> str:
    """Return the name of the job that an object stands for: its owner, or the owner of its pods."""
    for owner in each["metadata"].get("ownerReferences") or ():
        name = str(owner.get("name"))
        if owner.get("kind") != "Pod":
            return name
        if (pod := _POD_NAME.fullmatch(name)) is not None:
            return pod[1]
    return str(each["metadata"]["name"])


def _conditions(each: Object) -> dict[str, Mapping[str, str]]:
    return {str(found.get("type")): found for found in (each.get("status") or {}).get("conditions") or ()}


def _latest(conditions: Iterable[Mapping[str, str]]) -> float | None:
    changes = [text for each in conditions if (text := each.get("lastTransitionTime"))]
    return max(map(times.seconds, changes), default=None)
