"""Obstacles that keep replicas from running, read from a job's pods and the events about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from paceline.engines.kubernetes import times
from paceline.engines.kubernetes.clusters import Object
from paceline.engines.kubernetes.pod_states import attempt_of
from paceline.model import words
from paceline.model.jobs.obstacles import Obstacle, ObstacleKind
from paceline.model.roles import ReplicaId
from paceline.rendering import labels

#: Obstacles by the reason why a container waits.
#: Source: ``pkg/kubelet/images/types.go``, ``pkg/kubelet/container/sync_result.go``.
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
#: Obstacles by the reason of a pod's event.
#: Source: ``pkg/kubelet/events/event.go``, the scheduler, the taint manager.
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
        job: the name of the job.
        pods: the pods of the job.
        events: the events about all pods in its namespace, including pods of other jobs and deleted pods.
        silent: for each node that does not answer, by name: since when, in Unix seconds.
    """
    job_pods = list(pods)
    attempts = {
        pod["metadata"]["name"]: attempt for pod in job_pods if (attempt := attempt_of(pod)) is not None
    }
    coming = {attempt_of(pod) for pod in job_pods if (pod.get("status") or {}).get("phase") == "Pending"}
    pod_obstacles = [obstacle for pod in job_pods for obstacle in _of_pod(pod, silent)]
    there = {_key(obstacle) for obstacle in pod_obstacles}
    event_obstacles = []
    for obstacle in _told(job, events, attempts):
        # An event about an existing pod may be out of date. For a deleted pod it is the last information.
        is_over = {
            ObstacleKind.UNSCHEDULABLE: _key(obstacle) not in there,
            ObstacleKind.NODE_LOST: _attempt(obstacle) in attempts.values() and _key(obstacle) not in there,
            ObstacleKind.VOLUME: _attempt(obstacle) not in coming,
        }
        if not is_over.get(obstacle.kind, False):
            event_obstacles.append(obstacle)
    # An event replaces the pod's own obstacle of the same key, because it also has a count.
    counted = {_key(obstacle) for obstacle in event_obstacles}
    return [obstacle for obstacle in pod_obstacles if _key(obstacle) not in counted] + event_obstacles


def without_node(pods: Iterable[Object], queue: str | None) -> str:
    """Return for users how many pods of a job have no node yet, and what they wait for; empty: none waits.

    Args:
        pods: the pods of the job.
        queue: the queue that the job goes through, if any.
    """
    waiting = [
        obstacle
        for pod in pods
        for obstacle in _of_pod(pod, {})
        if obstacle.kind in (ObstacleKind.GATED, ObstacleKind.UNSCHEDULABLE)
    ]
    if not waiting:
        return ""
    if queue is not None:
        awaited = f"for the queue {queue}"
    elif waiting[0].kind is ObstacleKind.GATED:
        awaited = "for their scheduling gates"
    else:
        awaited = "for a node"
    count = len(waiting)
    waits = f"{words.counted(count, 'pod')} {'waits' if count == 1 else 'wait'}"
    return f"{waits} {awaited} (paceline why says more)"


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
            is_gated = condition.get("reason") == "SchedulingGated"
            yield Obstacle(
                kind=ObstacleKind.GATED if is_gated else ObstacleKind.UNSCHEDULABLE,
                message=_gates(pod)
                if is_gated
                else str(condition.get("message") or condition.get("reason") or "no node takes it"),
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


def _gates(pod: Object) -> str:
    gates = ", ".join(str(each.get("name")) for each in (pod.get("spec") or {}).get("schedulingGates") or ())
    return f"scheduling gates: {gates}"


def _first_waiting(status: Object) -> Mapping[str, str]:
    """Return the state of the first waiting container; init containers come first."""
    for kind in ("initContainerStatuses", "containerStatuses"):
        for each in status.get(kind) or ():
            waiting: Mapping[str, str] | None = (each.get("state") or {}).get("waiting")
            if waiting:
                return waiting
    return {}


def _told(job: str, events: Iterable[Object], known: Mapping[str, Attempt]) -> Iterator[Obstacle]:
    for event in events:
        about = event.get("involvedObject") or {}
        kind = _EVENTS.get(str(event.get("reason")))
        if kind is None or about.get("kind") != "Pod":
            continue
        name = str(about.get("name"))
        replica_attempt = known.get(name) or _attempt_in(job, name)
        if replica_attempt is not None:
            yield Obstacle(
                kind=kind,
                message=str(event.get("message") or event["reason"]),
                replica=replica_attempt[0],
                attempt=replica_attempt[1],
                at=_last(event),
                count=_count(event),
            )


def _attempt_in(job: str, name: str) -> Attempt | None:
    """Return the attempt that a pod name stands for (`labels.pod_name`); None for pods of other jobs."""
    rest, _, attempt = name.removeprefix(f"{job}-").rpartition("-")
    try:
        found = ReplicaId.parse(rest), int(attempt)
    except ValueError:
        return None
    return found if labels.pod_name(job, *found) == name else None


def _count(event: Object) -> int:
    """Return how often an event happened, from the old or the new fields of the event."""
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
