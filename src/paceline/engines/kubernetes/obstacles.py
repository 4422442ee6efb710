"""What the pods of a job, and the events about them, say of what keeps replicas from running."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from paceline.engines.kubernetes import times
from paceline.engines.kubernetes.clusters import Object
from paceline.engines.kubernetes.sights import attempt_of
from paceline.model.jobs.obstacles import Obstacle, ObstacleKind
from paceline.model.roles import ReplicaId
from paceline.rendering import labels

#: Why a container waits (``pkg/kubelet/images/types.go``, ``pkg/kubelet/container/sync_result.go``).
_WAITING: Mapping[str, ObstacleKind] = {
    **dict.fromkeys(
        (
            "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
            "ImageInspectError", "RegistryUnavailable",
        ),
        ObstacleKind.IMAGE,
    ),
    **dict.fromkeys(
        ("CreateContainerConfigError", "CreateContainerError", "RunContainerError"),
        ObstacleKind.CONFIGURATION,
    ),
    "CrashLoopBackOff": ObstacleKind.CRASH_LOOP,
    "ContainerCreating": ObstacleKind.COMING,
    "PodInitializing": ObstacleKind.COMING,
}  # fmt: skip
#: What events say of pods (``pkg/kubelet/events/event.go``, the scheduler, the taint manager).
_EVENTS: Mapping[str, ObstacleKind] = {
    "FailedScheduling": ObstacleKind.UNSCHEDULABLE,
    "FailedMount": ObstacleKind.VOLUME,
    "FailedAttachVolume": ObstacleKind.VOLUME,
    "Evicted": ObstacleKind.EVICTED,
    "Preempted": ObstacleKind.PREEMPTED,
    "TaintManagerEviction": ObstacleKind.NODE_LOST,
    "NodeNotReady": ObstacleKind.NODE_LOST,
}
_ENDED = ("Succeeded", "Failed")

Attempt = tuple[ReplicaId, int]


def read(
    job: str, pods: Iterable[Object], events: Iterable[Object], silent: Mapping[str, float]
) -> list[Obstacle]:
    """Return what keeps the replicas of a job from running, or has ended them.

    Args:
        job: its name.
        pods: its pods.
        events: those about pods of its namespace, other jobs' too; of pods that are gone as well.
        silent: since when nodes have not answered, by name; Unix seconds.
    """
    found = list(pods)
    known = {pod["metadata"]["name"]: attempt for pod in found if (attempt := attempt_of(pod)) is not None}
    coming = {attempt_of(pod) for pod in found if (pod.get("status") or {}).get("phase") == "Pending"}
    seen = [each for pod in found for each in _of_pod(pod, silent)]
    there = {_key(each) for each in seen}
    told = []
    for each in _told(job, events, known):
        # What an event says of a pod that is there may be over; of one that is gone it is the last word.
        is_over = {
            ObstacleKind.UNSCHEDULABLE: _key(each) not in there,
            ObstacleKind.NODE_LOST: _attempt(each) in known.values() and _key(each) not in there,
            ObstacleKind.VOLUME: _attempt(each) not in coming,
        }
        if not is_over.get(each.kind, False):
            told.append(each)
    # An event also counts what the pod says.
    counted = {_key(each) for each in told}
    return [each for each in seen if _key(each) not in counted] + told


def _key(each: Obstacle) -> tuple[ObstacleKind, ReplicaId | None, int | None]:
    return each.kind, each.replica, each.attempt


def _attempt(each: Obstacle) -> tuple[ReplicaId | None, int | None]:
    return each.replica, each.attempt


def _of_pod(pod: Object, silent: Mapping[str, float]) -> Iterator[Obstacle]:
    found, status = attempt_of(pod), pod.get("status") or {}
    if found is None or status.get("phase") in _ENDED:
        return
    replica, attempt = found
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            yield Obstacle(
                kind=ObstacleKind.UNSCHEDULABLE,
                message=str(condition.get("message") or condition.get("reason") or "no node takes it"),
                replica=replica,
                attempt=attempt,
                at=_time(condition.get("lastTransitionTime")),
            )
    node = str((pod.get("spec") or {}).get("nodeName"))
    if node in silent:
        message = f"node {node} does not answer"
        yield Obstacle(
            kind=ObstacleKind.NODE_LOST, message=message, replica=replica, attempt=attempt, at=silent[node]
        )
    waiting = _first_waiting(status)
    kind = _WAITING.get(waiting.get("reason", ""))
    if kind is not None:
        message = ": ".join(str(part) for part in (waiting["reason"], waiting.get("message")) if part)
        yield Obstacle(kind=kind, message=message, replica=replica, attempt=attempt)


def _first_waiting(status: Object) -> Mapping[str, str]:
    """Return what the first container that waits says; those of the beginning come first."""
    for kind in ("initContainerStatuses", "containerStatuses"):
        for each in status.get(kind) or ():
            waiting: Mapping[str, str] | None = (each.get("state") or {}).get("waiting")
            if waiting:
                return waiting
    return {}


def _told(job: str, events: Iterable[Object], known: Mapping[str, Attempt]) -> Iterator[Obstacle]:
    for each in events:
        about = each.get("involvedObject") or {}
        kind = _EVENTS.get(str(each.get("reason")))
        if kind is None or about.get("kind") != "Pod":
            continue
        name = str(about.get("name"))
        found = known.get(name) or _attempt_in(job, name)
        if found is not None:
            yield Obstacle(
                kind=kind,
                message=str(each.get("message") or each["reason"]),
                replica=found[0],
                attempt=found[1],
                at=_last(each),
                count=_count(each),
            )


def _attempt_in(job: str, name: str) -> Attempt | None:
    """Return the attempt that a pod was, by its name (`labels.pod_name`); None for pods of others."""
    rest, _, attempt = name.removeprefix(f"{job}-").rpartition("-")
    try:
        found = ReplicaId.parse(rest), int(attempt)
    except ValueError:
        return None
    return found if labels.pod_name(job, *found) == name else None


def _count(event: Object) -> int:
    """Return how often something happened, by the old fields of events or by the new ones."""
    series = event.get("series") or {}
    return int(event.get("count") or series.get("count") or 1)


def _last(event: Object) -> float | None:
    series = event.get("series") or {}
    for time in (event.get("lastTimestamp"), series.get("lastObservedTime"), event.get("eventTime")):
        if time:
            return times.seconds(time)
    return None


def _time(text: str | None) -> float | None:
    return times.seconds(text) if text else None
