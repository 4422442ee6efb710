"""Changes the limits of running replicas on a cluster: checks a resize, and requests it from the operator.

A permanent resize is a change of the job's spec, a temporary one an annotation. The operator does the rest
(`operators.executions`), and completes it even if the caller is gone by then.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from paceline.control import allowances, resizings
from paceline.control.resizings import Resize
from paceline.control.states import JobState
from paceline.engines.kubernetes import cpu_managers
from paceline.engines.kubernetes.clusters import NAMES_BYTES, ClusterError, Object
from paceline.errors import Conflict, EngineError, WaitTimeout
from paceline.model import quantities
from paceline.model.jobs import adjustments
from paceline.model.jobs.adjustments import Adjustment
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.nodes import Node
from paceline.model.jobs.runs import NOT_RESIZED
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.roles import ReplicaId
from paceline.rendering import sizes
from paceline.services.cluster import job_objects, records, spec_changes
from paceline.services.cluster.annotations import ADJUSTMENTS, CHANGING, adjustments_of
from paceline.services.cluster.job_objects import JobObjects
from paceline.specs.job_file import custom_resources
from paceline.stores import encodings

#: How long a process's claim to change a job (`CHANGING`) holds after it was last renewed.
LEASE_SECONDS = 60.0
#: The operator looks at a job as soon as its resource changes; a kubelet takes some seconds, often four.
ANSWER_SECONDS = 60.0
_WAITING = "kubectl get pods --all-namespaces --field-selector=status.phase=Pending"
#: The parts of a job's spec that set the sizes of its replicas.
_SIZES = ("roles", "overrides")
_SINCE = "Kubernetes resizes pods since 1.33 (beta) and 1.35 (stable)"


def check(objects: JobObjects, spec: JobSpec, hosts: Mapping[ReplicaId, str], resize: Resize) -> None:
    """Check that the cluster can make a resize now.

    Args:
        objects: the objects of the namespace.
        spec: the current spec of the job.
        hosts: the node of each replica.
        resize: the requested sizes.

    Raises:
        EngineError: the cluster does not resize pods, or a node is too small or does not have enough free.
        ClusterError: the cluster does not answer.
    """
    check_version(objects)
    nodes = {}
    with contextlib.suppress(ClusterError):  # A user who may not read nodes finds out by trying.
        nodes = {node.name: node for node in objects.cluster_state().nodes}
    for replica in resizings.targets(spec, resize):
        node = nodes.get(hosts.get(replica, ""))
        if node is not None:
            _check_room(replica, node, spec, resize)
            _check_static(objects, replica, node.name, spec)


def check_version(objects: JobObjects) -> None:
    """Check that the cluster resizes pods.

    Raises:
        EngineError: the cluster does not resize pods.
    """
    known = json.loads(objects.do(objects.cluster.read("/api/v1", limit_bytes=NAMES_BYTES)))
    if not any(each.get("name") == "pods/resize" for each in known.get("resources") or ()):
        raise EngineError("this cluster does not resize pods that run", _SINCE)


def check_returns(objects: JobObjects) -> None:
    """Check that no pod of the cluster waits for CPU: such a pod might take the CPU that is cut, and keep it.

    Raises:
        Conflict: a pod waits for CPU.
    """
    waiting: tuple[str, ...] = ()
    with contextlib.suppress(ClusterError):  # A user who may not read all pods finds out by trying.
        waiting = objects.cluster_state().short_of_cpu
    if waiting:
        others = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
        raise Conflict(
            f"the pod {waiting[0]}{others} waits for CPU, and might keep what a probe cuts for a time",
            f"try again when none waits: {_WAITING}",
        )


def _check_room(replica: ReplicaId, node: Node, spec: JobSpec, resize: Resize) -> None:
    role = spec.role_of(replica)
    millicores = None if resize.cpu_cores is None else round(resize.cpu_cores * 1000)
    asked = (
        ("CPU", millicores, role.requested_millicores, node.allocatable.millicores, node.free.millicores),
        (
            "memory",
            resize.memory_bytes,
            role.memory_bytes or 0,
            node.allocatable.memory_bytes,
            node.free.memory_bytes,
        ),
    )
    for resource, amount, has, most, free in asked:
        if amount is None:
            continue
        if amount > most:
            raise EngineError(
                f"{replica} cannot have {_amount(resource, amount)}: "
                f"node {node.name} has {_amount(resource, most)}",
                "a pod stays on its node; change the job file, and let the job go on from its checkpoint",
            )
        if amount - has > free:
            raise EngineError(
                f"{replica} cannot have {_amount(resource, amount)} now: node {node.name} has "
                f"{_amount(resource, max(0, free))} left for it",
                f"ask for at most {_amount(resource, has + max(0, free))}, or wait for other pods to end",
            )


def _amount(what: str, amount: int) -> str:
    if what == "CPU":
        return f"{quantities.quantity_cores(amount / 1000)} CPU"
    return f"{quantities.format_bytes(amount)} of memory"


def _check_static(objects: JobObjects, replica: ReplicaId, node: str, spec: JobSpec) -> None:
    """Refuse to resize a pod whose requests equal its limits if its node has a static CPU manager."""
    role = spec.role_of(replica)
    is_guaranteed = role.cpu_cores is None or round(role.cpu_cores * 1000) == role.requested_millicores
    if not is_guaranteed or role.cpu_cores is None:
        return
    with contextlib.suppress(ClusterError, ValueError):  # If it is not known, the user finds out by trying.
        manager = objects.do(cpu_managers.read(objects.cluster, node))
        if manager.is_static:
            raise EngineError(
                f"{replica} cannot be resized: node {node} gives out cores for good (static CPU manager)",
                "cpu_policy: shared in the job file, and let it go on from its checkpoint",
            )


def patch_of(spec: JobSpec, resize: Resize) -> dict[str, Any]:
    """Return the merge patch (RFC 7386) of the job's resource that makes a resize."""
    patch: dict[str, Any] = {}
    for change in resizings.changes(spec, resize):
        place = patch
        *way, last = change.path
        for name in way:
            place = place.setdefault(name, {})
        place[last] = change.value
    return patch


def resize(objects: JobObjects, name: str, spec: JobSpec, resize: Resize) -> None:
    """Change the spec of a job, and wait until its replicas have the new sizes.

    If the cluster does not make the resize, the old sizes are put back into the spec.

    Args:
        objects: the objects of the namespace.
        name: the job.
        spec: the current spec of the job.
        resize: the requested sizes.

    Raises:
        Conflict: the job ends meanwhile.
        EngineError: the cluster does not make the resize.
        WaitTimeout: the operator or a kubelet does not answer.
        ClusterError: the cluster refuses the change.
    """
    last = _last_event(objects, name)
    before = objects.resource(name)["spec"]
    objects.patch(name, patch_of(spec, resize))
    try:
        _wait(objects, name, last)
    except EngineError:
        after = objects.resource(name)["spec"]
        back = {part: spec_changes.merge_patch(after.get(part), before.get(part)) for part in _SIZES}
        objects.patch(name, {"spec": back})
        raise


def resize_for(objects: JobObjects, name: str, spec: JobSpec, resize: Resize, *, seconds: float) -> None:
    """Resize replicas of a job for a number of seconds (raises as `resize`)."""
    wanted = resizings.adjustments(spec, resize, until=objects.clock() + seconds)
    try:
        adjust(objects, name, wanted)
    except EngineError:
        adjust(objects, name, [dataclasses.replace(each, until=0.0) for each in wanted])
        raise


def adjust(objects: JobObjects, name: str, wanted: Sequence[Adjustment]) -> float:
    """Annotate a job with adjustments, and wait until its replicas have them; return when (Unix seconds).

    Raises:
        Conflict: the job ends meanwhile.
        EngineError: the cluster does not make the adjustments.
        WaitTimeout: the operator or a kubelet does not answer.
        ClusterError: the cluster refuses the change.
    """
    now, last = objects.clock(), _last_event(objects, name)
    for resource in _tries(objects, name):
        known = adjustments.current(adjustments_of(resource), now)
        text = encodings.encode(adjustments.merged(known, wanted))
        if _annotate(objects, resource, {ADJUSTMENTS: text, **_renewed(resource, now)}):
            break
    return _wait(objects, name, last)


def _last_event(objects: JobObjects, name: str) -> int:
    return max((number for number, _ in objects.events(name)), default=0)


def _wait(objects: JobObjects, name: str, last: int) -> float:
    """Wait until the pods of a job have the sizes that its resource asks for; return when (Unix seconds).

    Args:
        objects: the objects of the namespace.
        name: the job.
        last: the number of the last event before the change.
    """
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        resource = objects.resource(name)
        state = _state(resource, objects.clock())
        if state is None or state.phase.is_final or state.phase is JobPhase.STOPPING:
            raise Conflict(f"{name} has ended: it can no longer be changed", f"paceline get {name}")
        if _is_looked_at(resource) and _have_size(state, objects.attempts(name)):
            return objects.clock()
        said = (each for _, each in objects.events(name, since_id=last) if each.kind == NOT_RESIZED)
        if (refused := next(said, None)) is not None:
            raise EngineError(refused.message, f"paceline describe {name}")
        time.sleep(job_objects.POLL_SECONDS)
    raise WaitTimeout(
        f"the operator, or the kubelet of a node, has not answered for {ANSWER_SECONDS:g} s",
        f"paceline get {name}",
    )


def _is_looked_at(resource: Object) -> bool:
    """Return whether the operator has seen the current spec of a job."""
    status = resource.get("status") or {}
    return bool(status.get("observedGeneration") == resource["metadata"].get("generation"))


def _state(resource: Object, now: float) -> JobState | None:
    """Return the state of a job, with the adjustments of its replicas; None: it has not begun."""
    record = records.read(resource.get("status") or {}, custom_resources.job_spec(resource))
    if record is None:
        return None
    return dataclasses.replace(record.state, adjustments=adjustments.current(adjustments_of(resource), now))


def _have_size(state: JobState, found: Iterable[tuple[tuple[ReplicaId, int], Object]]) -> bool:
    """Return whether the pods of a job have the sizes that their replicas are allowed now."""
    for (replica, attempt), pod in found:
        own = state.replica(replica)
        if own is None or own.attempt != attempt or own.phase is not ReplicaPhase.RUNNING:
            continue
        allowed = sizes.sized(state.spec.role_of(replica), allowances.allowance(state, replica))
        if not sizes.has_size(pod, sizes.adjustable(allowed)):
            return False
    return True


@contextlib.contextmanager
def changing(objects: JobObjects, name: str, doing: str) -> Iterator[None]:
    """Keep others from changing a job: its resource names the process that changes it, and until when.

    Raises:
        Conflict: another process changes it.
        ClusterError: the cluster refuses it.
    """
    _take(objects, name, doing)
    try:
        yield
    finally:
        with contextlib.suppress(ClusterError):  # The claim expires by itself.
            objects.patch(name, {"metadata": {"annotations": {CHANGING: None}}})


def _take(objects: JobObjects, name: str, doing: str) -> None:
    for resource in _tries(objects, name):
        until, who, what = _changer(resource)
        if who not in ("", _myself()) and until > objects.clock():
            raise Conflict(f"{name} is being {what} from {who}", "try again when that is over")
        if _annotate(objects, resource, {CHANGING: _signed(doing, objects.clock())}):
            return


def _renewed(resource: Object, now: float) -> Mapping[str, str]:
    """Return the renewed claim of this process to change a job; empty: this process has no claim."""
    _, who, what = _changer(resource)
    return {CHANGING: _signed(what, now)} if who == _myself() else {}


def _myself() -> str:
    return f"{socket.gethostname()}/{os.getpid()}"


def _signed(doing: str, now: float) -> str:
    return f"{now + LEASE_SECONDS:.0f} {_myself()} {doing}"


def _changer(resource: Object) -> tuple[float, str, str]:
    """Return until when a job is being changed (Unix seconds), by which process, and how."""
    text = (resource["metadata"].get("annotations") or {}).get(CHANGING, "")
    until, _, rest = text.partition(" ")
    who, _, what = rest.partition(" ")
    return (float(until) if until.isdecimal() else 0.0), who, what


def _tries(objects: JobObjects, name: str) -> Iterator[Object]:
    """Yield the current resource of a job for each try: others may change it between two tries."""
    for _ in range(20):
        yield objects.resource(name)
    raise Conflict(f"{name} was not changed: others keep changing it at the same time", "try again")


def _annotate(objects: JobObjects, resource: Object, annotations: Mapping[str, str]) -> bool:
    """Set annotations of a resource if it was not changed since it was read; return whether they were set."""
    metadata = resource["metadata"]
    changes = {"resourceVersion": metadata["resourceVersion"], "annotations": annotations}
    try:
        objects.patch(metadata["name"], {"metadata": changes})
    except ClusterError as error:
        if not error.is_conflict:
            raise
        return False
    return True
