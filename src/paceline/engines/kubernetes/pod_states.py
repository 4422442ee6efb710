"""The states of a job's attempts, as its pods in the API server show them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from paceline.control.reconciliations import PodState, Stage
from paceline.engines import exit_reasons, fetched_codes
from paceline.engines.kubernetes import times
from paceline.model.jobs.statuses import NOT_STARTED, ExitKind, ExitReason, signal_of
from paceline.model.roles import ReplicaId
from paceline.rendering import agents, labels, pods

#: A pod whose node has not answered for this long counts as lost.
NODE_SECONDS = 60.0
#: A container that could not be started for this long counts as failed.
START_SECONDS = 120.0
#: Why a container cannot start (``pkg/kubelet/images/types.go``, ``pkg/kubelet/container/sync_result.go``).
_STUCK = (
    "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
    "RegistryUnavailable", "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
    "CrashLoopBackOff",
)  # fmt: skip
#: The init containers that bring the agent and the code, in their order.
_INIT, _BRINGERS = "initContainerStatuses", (agents.CONTAINER, pods.CODE_CONTAINER)
#: Another pod would fail for these reasons too. The other images may arrive when a registry answers again.
_NEVER = (
    "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError",
    "RunContainerError",
)  # fmt: skip

#: The condition of a pod whose end its cluster decided, and that of a pod which Kueue has deleted.
#: Source: Kubernetes' documentation, "Pod disruption conditions"; ``pkg/controller/jobs/pod`` of Kueue.
_DISRUPTIONS = ("DisruptionTarget", "TerminationTarget")
#: A node that lacks memory or disk evicts pods, maybe because of what the pod itself takes.
_OWN_FAULT = "TerminationByKubelet"

Object = Mapping[str, Any]


def of(
    found: Iterable[Object], *, gone: Iterable[Object] = (), silent: Mapping[str, float], now: float
) -> list[PodState]:
    """Return the states of the pods of one job; pods that are not replicas are ignored.

    Args:
        found: the pods, as the API returns them.
        gone: pods that are deleted, as they were last. They count if they say how they ended.
        silent: for each node that does not answer, by name: since when, in Unix seconds.
        now: the current time in Unix seconds.
    """
    states = [pod_state for pod in found if (pod_state := _pod_state(pod, silent, now)) is not None]
    present = {(each.replica, each.attempt) for each in states}
    last = [pod_state for pod in gone if (pod_state := _last_state(pod, silent, now)) is not None]
    return states + [each for each in last if (each.replica, each.attempt) not in present]


def attempt_of(each: Object) -> tuple[ReplicaId, int] | None:
    """Return the replica and attempt that the labels of an object name; None if they name none."""
    own = each["metadata"].get("labels") or {}
    try:
        replica = ReplicaId.parse(f"{own.get(labels.ROLE)}-{own.get(labels.INDEX)}")
        return replica, int(own.get(labels.ATTEMPT, ""))
    except ValueError:
        return None


def _pod_state(pod: Object, silent: Mapping[str, float], now: float) -> PodState | None:
    found = attempt_of(pod)
    if found is None:
        return None
    replica, attempt = found
    stage, reason = _stage(pod, silent, now)
    is_leaving = pod["metadata"].get("deletionTimestamp") is not None
    return PodState(replica=replica, attempt=attempt, stage=stage, reason=reason, is_leaving=is_leaving)


def _last_state(pod: Object, silent: Mapping[str, float], now: float) -> PodState | None:
    """Return the state of a deleted pod that says how it ended; None: it does not say."""
    pod_state = _pod_state(pod, silent, now)
    if pod_state is None or pod_state.stage is Stage.ENDED:
        return pod_state
    disruption = _disruption(pod)
    if disruption is None:
        return None
    return dataclasses.replace(pod_state, stage=Stage.ENDED, reason=disruption)


def _disruption(pod: Object) -> ExitReason | None:
    """Return that the cluster decided the end of a pod, and why; None: it did not."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        reason = str(condition.get("reason") or "")
        is_disruption = condition.get("type") in _DISRUPTIONS and reason != _OWN_FAULT
        if is_disruption and condition.get("status") == "True":
            message = ": ".join(part for part in (reason, str(condition.get("message") or "")) if part)
            return ExitReason(kind=ExitKind.DISRUPTED, message=message)
    return None


def _stage(pod: Object, silent: Mapping[str, float], now: float) -> tuple[Stage, ExitReason | None]:
    status = pod.get("status") or {}
    state = _state(status, "containerStatuses", pods.TRAINING)
    # A replica that was asked to make room may end with any code, also with 0.
    if "terminated" in state:
        return Stage.ENDED, _disruption(pod) or exit_reason(state["terminated"])
    if status.get("phase") in ("Succeeded", "Failed"):
        return Stage.ENDED, _disruption(pod) or _ended_without_a_word(status)
    node = str((pod.get("spec") or {}).get("nodeName") or "")
    if pod["metadata"].get("deletionTimestamp") and not node:
        # No kubelet has it, so it never runs, and never ends by itself where a finalizer keeps it (Kueue's).
        return Stage.ENDED, _disruption(pod)
    if node in silent and now - silent[node] > NODE_SECONDS:
        message = f"node {node} has not answered for {now - silent[node]:.0f} s"
        return Stage.ENDED, ExitReason(kind=ExitKind.LOST, message=message)
    if "running" in state:
        return Stage.RUNNING, None
    bringing = (_state(status, _INIT, name).get("waiting") for name in _BRINGERS)
    waiting = next((each for each in bringing if each and each.get("reason") in _STUCK), state.get("waiting"))
    if waiting and waiting.get("reason") in _STUCK and now - _placed_at(pod) > START_SECONDS:
        message = ": ".join(part for part in (waiting["reason"], waiting.get("message")) if part)
        code = NOT_STARTED[-1] if waiting["reason"] in _NEVER else None
        return Stage.ENDED, ExitReason(kind=ExitKind.LAUNCH_FAILED, code=code, message=message)
    return Stage.COMING, None


def _state(status: Object, kind: str, name: str) -> Object:
    """Return the state of a container: a mapping with one of the keys waiting, running and terminated."""
    found = [each for each in status.get(kind) or () if each.get("name") == name]
    return (found[0].get("state") or {}) if found else {}


def exit_reason(terminated: Object) -> ExitReason:
    """Return why a container ended: from its agent's last message, or else from the container runtime."""
    code, message = int(terminated.get("exitCode", 0)), str(terminated.get("message") or "")
    if terminated.get("reason") == "OOMKilled":
        return ExitReason(kind=ExitKind.OUT_OF_MEMORY, code=code, message="the container's limit was reached")
    told = exit_reasons.told(message)
    if told is not None:
        return told
    if code == 0:
        return ExitReason(kind=ExitKind.COMPLETED, code=0)
    if code in NOT_STARTED:
        return ExitReason(kind=ExitKind.LAUNCH_FAILED, code=code, message=message)
    signal = signal_of(code)
    if signal is not None:
        return ExitReason(kind=ExitKind.SIGNAL, code=code, signal=signal, message=message)
    return ExitReason(kind=ExitKind.ERROR, code=code, message=message)


def not_resized(each: Object) -> str:
    """Return why the resize of a running pod is stuck; empty if it is done or will be within seconds.

    Source: Kubernetes' documentation, "Resize CPU and Memory Resources assigned to Containers", pod resize
    status: a resize that waits for room is deferred, and one that its node can never satisfy is infeasible.
    """
    for condition in (each.get("status") or {}).get("conditions") or ():
        kind, reason = condition.get("type"), str(condition.get("reason") or "")
        is_stuck = kind == "PodResizePending" or (kind == "PodResizeInProgress" and reason == "Error")
        if is_stuck and condition.get("status") == "True":
            return ": ".join(part for part in (reason.lower(), str(condition.get("message") or "")) if part)
    return ""


def _ended_without_a_word(status: Object) -> ExitReason:
    """Return why a pod ended without a message from its container: evicted, preempted, not admitted."""
    if status.get("phase") == "Succeeded":
        return ExitReason(kind=ExitKind.COMPLETED, code=0)
    for name in _BRINGERS:
        ended = _state(status, _INIT, name).get("terminated") or {}
        code = int(ended.get("exitCode", 0))
        if ended.get("reason") == "OOMKilled" and name == agents.CONTAINER:
            message = (
                "the container's limit was reached while the agent was brought: it is too small to start"
            )
            return ExitReason(kind=ExitKind.OUT_OF_MEMORY, code=code, message=message)
        if code != 0:
            message = f"the {name} could not be brought: {_cause(ended)}"
            return ExitReason(kind=ExitKind.LAUNCH_FAILED, code=code, message=message)
    parts = (status.get("reason"), status.get("message"))
    message = ": ".join(str(part) for part in parts if part) or "its pod failed"
    return ExitReason(kind=ExitKind.LOST, message=message)


def _cause(ended: Object) -> str:
    """Return why an init container failed."""
    message, reason = str(ended.get("message") or "").strip(), str(ended.get("reason") or "")
    said = fetched_codes.told(message)
    if said is not None and said.error:
        return said.error
    # Without a last message it is the end of the log; the last line of a traceback names the error.
    last = message.rpartition("\n")[2]
    return ": ".join(part for part in (reason if reason != "Error" else "", last) if part) or reason


def notes(found: Iterable[Object]) -> tuple[str, ...]:
    """Return the distinct notes from the fetchers of a job's code, such as its commit."""
    words: dict[str, None] = {}
    for pod in found:
        ended = _state(pod.get("status") or {}, _INIT, pods.CODE_CONTAINER).get("terminated") or {}
        said = fetched_codes.told(str(ended.get("message") or ""))
        words.update(dict.fromkeys(said.notes if said is not None else ()))
    return tuple(words)


def _placed_at(pod: Object) -> float:
    """Return when a pod got its node (Unix seconds): it may have waited for that in a queue for hours."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            at = condition.get("lastTransitionTime")
            if at:
                return times.seconds(at)
    return times.seconds(pod["metadata"]["creationTimestamp"])


def silent_nodes(nodes: Iterable[Object]) -> dict[str, float]:
    """Return, for each node that does not answer, by name: since when, in Unix seconds."""
    found = {}
    for node in nodes:
        for condition in (node.get("status") or {}).get("conditions") or ():
            if condition.get("type") == "Ready" and condition.get("status") != "True":
                found[node["metadata"]["name"]] = times.seconds(condition["lastTransitionTime"])
    return found
