"""Replicas of a cluster that get other limits while they run: what is checked, and how it is asked for.

For good, it is a change of the job's spec; for a time, an annotation beside it. The operator does the rest
(`operators.executions`), and goes on with it even if the caller is gone by then.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
from paceline.rendering import pods
from paceline.services.cluster import records, spec_changes
from paceline.services.cluster.annotations import ADJUSTMENTS, CHANGING, adjustments_of
from paceline.specs.job_file import custom_resources
from paceline.stores import encodings

if TYPE_CHECKING:
    from paceline.services.cluster.job_objects import JobObjects

#: For so long after it was said last.
LEASE_SECONDS = 60.0
#: An operator looks at a job at once when its resource changes; a kubelet takes some seconds, often four.
ANSWER_SECONDS = 60.0
POLL_SECONDS = 0.5
_WAITING = "kubectl get pods --all-namespaces --field-selector=status.phase=Pending"
#: Parts of a job's spec that say what its replicas have.
_SIZES = ("roles", "overrides")
_SINCE = "Kubernetes resizes pods since 1.33 (beta) and 1.35 (stable)"


def check(objects: JobObjects, spec: JobSpec, hosts: Mapping[ReplicaId, str], resize: Resize) -> None:
    """Let a resize pass that the cluster can give now.

    Args:
        objects: those of the namespace.
        spec: the job as it is.
        hosts: the node of each replica.
        resize: what is asked for.

    Raises:
        EngineError: the cluster does not resize pods, or a node has not as much, or not at the moment.
        ClusterError: the cluster does not say.
    """
    check_version(objects)
    nodes = {}
    with contextlib.suppress(ClusterError):  # Who may not look at nodes finds out by trying.
        nodes = {node.name: node for node in objects.cluster_state().nodes}
    for replica in resizings.targets(spec, resize):
        node = nodes.get(hosts.get(replica, ""))
        if node is not None:
            _check_room(replica, node, spec, resize)
            _check_static(objects, replica, node.name, spec)


def check_version(objects: JobObjects) -> None:
    """Let a cluster pass that resizes pods.

    Raises:
        EngineError: it does not.
    """
    known = json.loads(objects.do(objects.cluster.read("/api/v1", limit_bytes=NAMES_BYTES)))
    if not any(each.get("name") == "pods/resize" for each in known.get("resources") or ()):
        raise EngineError("this cluster does not resize pods that run", _SINCE)


def check_returns(objects: JobObjects) -> None:
    """Let a cluster pass on which nothing waits for CPU: such a pod may take what is cut, and keep it.

    Raises:
        Conflict: some pod does.
    """
    waiting: tuple[str, ...] = ()
    with contextlib.suppress(ClusterError):  # Who may not look at all pods finds out by trying.
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
    for what, wanted, has, most, free in asked:
        if wanted is None:
            continue
        if wanted > most:
            raise EngineError(
                f"{replica} cannot have {_amount(what, wanted)}: node {node.name} has {_amount(what, most)}",
                "a pod stays on its node; change the job file, and let the job go on from its checkpoint",
            )
        if wanted - has > free:
            raise EngineError(
                f"{replica} cannot have {_amount(what, wanted)} now: node {node.name} has "
                f"{_amount(what, max(0, free))} left for it",
                f"ask for at most {_amount(what, has + max(0, free))}, or wait for other pods to end",
            )


def _amount(what: str, amount: int) -> str:
    if what == "CPU":
        return f"{quantities.quantity_cores(amount / 1000)} CPU"
    return f"{quantities.format_bytes(amount)} of memory"


def _check_static(objects: JobObjects, replica: ReplicaId, node: str, spec: JobSpec) -> None:
    """Refuse what a kubelet with a static CPU manager would: a pod whose requests equal its limits."""
    role = spec.role_of(replica)
    is_guaranteed = role.cpu_cores is None or round(role.cpu_cores * 1000) == role.requested_millicores
    if not is_guaranteed or role.cpu_cores is None:
        return
    with contextlib.suppress(ClusterError, ValueError):  # What is not known is found out by trying.
        manager = objects.do(cpu_managers.read(objects.cluster, node))
        if manager.is_static:
            raise EngineError(
                f"{replica} cannot be resized: node {node} gives out cores for good (static CPU manager)",
                "cpu_policy: shared in the job file, and let it go on from its checkpoint",
            )


def patch_of(spec: JobSpec, resize: Resize) -> dict[str, Any]:
    """Return what makes a resize of a job's resource when it is merged into that (RFC 7386)."""
    patch: dict[str, Any] = {}
    for change in resizings.changes(spec, resize):
        place = patch
        *way, last = change.path
        for name in way:
            place = place.setdefault(name, {})
        place[last] = change.value
    return patch


def resize(objects: JobObjects, name: str, spec: JobSpec, resize: Resize) -> None:
    """Change the spec of a job, and wait until its replicas have what it says then.

    What the cluster does not give is put back.

    Args:
        objects: those of the namespace.
        name: the job.
        spec: it as it is.
        resize: what is asked for.

    Raises:
        Conflict: it ends meanwhile.
        EngineError: the cluster does not give it.
        WaitTimeout: the operator or a kubelet does not answer.
        ClusterError: the cluster refuses it.
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
    """Have replicas of a job have something else for so long (raises as `resize`)."""
    wanted = resizings.adjustments(spec, resize, until=objects.clock() + seconds)
    try:
        adjust(objects, name, wanted)
    except EngineError:
        adjust(objects, name, [dataclasses.replace(each, until=0.0) for each in wanted])
        raise


def adjust(objects: JobObjects, name: str, wanted: Sequence[Adjustment]) -> float:
    """Leave what replicas of a job are to have for a time, and wait until they have it; return when.

    Raises:
        Conflict: it ends meanwhile.
        EngineError: the cluster does not give it.
        WaitTimeout: the operator or a kubelet does not answer.
        ClusterError: the cluster refuses it.
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
    """Wait until the pods of a job have what its resource says; return when (Unix seconds).

    Args:
        objects: those of the namespace.
        name: the job.
        last: the number of the last event before that was changed.
    """
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        resource = objects.resource(name)
        state = _state(resource, objects.clock())
        if state is None or state.phase.is_final or state.phase is JobPhase.STOPPING:
            raise Conflict(f"{name} has ended: nothing of it is changed any more")
        if _is_looked_at(resource) and _have_size(state, objects.attempts(name)):
            return objects.clock()
        said = (each for _, each in objects.events(name, since_id=last) if each.kind == NOT_RESIZED)
        if (refused := next(said, None)) is not None:
            raise EngineError(refused.message, f"paceline describe {name}")
        time.sleep(POLL_SECONDS)
    raise WaitTimeout(
        f"the operator, or the kubelet of a node, has not answered for {ANSWER_SECONDS:g} s",
        f"paceline get {name}",
    )


def _is_looked_at(resource: Object) -> bool:
    """Whether the operator has seen the spec of a job as it is now."""
    status = resource.get("status") or {}
    return bool(status.get("observedGeneration") == resource["metadata"].get("generation"))


def _state(resource: Object, now: float) -> JobState | None:
    """Return where a job stands, with what its replicas are to have for a time; None: it has not begun."""
    record = records.read(resource.get("status") or {}, custom_resources.job_spec(resource))
    if record is None:
        return None
    return dataclasses.replace(record.state, adjustments=adjustments.current(adjustments_of(resource), now))


def _have_size(state: JobState, found: Iterable[tuple[tuple[ReplicaId, int], Object]]) -> bool:
    """Whether the pods of a job have what their replicas may take now."""
    for (replica, attempt), pod in found:
        own = state.replica(replica)
        if own is None or own.attempt != attempt or own.phase is not ReplicaPhase.RUNNING:
            continue
        allowed = pods.sized(state.spec.role_of(replica), allowances.allowance(state, replica))
        if not pods.has_size(pod, pods.adjustable(allowed)):
            return False
    return True


@contextlib.contextmanager
def changing(objects: JobObjects, name: str, doing: str) -> Iterator[None]:
    """Keep others from changing a job: its resource says who does, and until when that is to be believed.

    Raises:
        Conflict: another process changes it.
        ClusterError: the cluster refuses it.
    """
    _take(objects, name, doing)
    try:
        yield
    finally:
        with contextlib.suppress(ClusterError):  # It ends by itself.
            objects.patch(name, {"metadata": {"annotations": {CHANGING: None}}})


def _take(objects: JobObjects, name: str, doing: str) -> None:
    for resource in _tries(objects, name):
        until, who, what = _changer(resource)
        if who not in ("", _myself()) and until > objects.clock():
            raise Conflict(f"{name} is being {what} from {who}", "try again when that is over")
        if _annotate(objects, resource, {CHANGING: _signed(doing, objects.clock())}):
            return


def _renewed(resource: Object, now: float) -> Mapping[str, str]:
    """Return what says again that a job is being changed; empty: it is not, or by another process."""
    _, who, what = _changer(resource)
    return {CHANGING: _signed(what, now)} if who == _myself() else {}


def _myself() -> str:
    return f"{socket.gethostname()}/{os.getpid()}"


def _signed(doing: str, now: float) -> str:
    return f"{now + LEASE_SECONDS:.0f} {_myself()} {doing}"


def _changer(resource: Object) -> tuple[float, str, str]:
    """Return until when a job is being changed (Unix seconds), by whom, and how."""
    text = (resource["metadata"].get("annotations") or {}).get(CHANGING, "")
    until, _, rest = text.partition(" ")
    who, _, what = rest.partition(" ")
    return (float(until) if until.isdecimal() else 0.0), who, what


def _tries(objects: JobObjects, name: str) -> Iterator[Object]:
    """Yield a job's resource as it is, again and again: others may change it meanwhile."""
    for _ in range(20):
        yield objects.resource(name)
    raise Conflict(f"{name} is changed all the time", "try again")


def _annotate(objects: JobObjects, resource: Object, annotations: Mapping[str, str]) -> bool:
    """Set annotations of a resource; return whether it was still as it was read."""
    metadata = resource["metadata"]
    changes = {"resourceVersion": metadata["resourceVersion"], "annotations": annotations}
    try:
        objects.patch(metadata["name"], {"metadata": changes})
    except ClusterError as error:
        if not error.is_conflict:
            raise
        return False
    return True
