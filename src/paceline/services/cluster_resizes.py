"""Replicas of a cluster that get other limits while they run: what is checked, and how it is asked for.

For good, it is a change of the job's spec; for a time, an annotation beside it. The operator does the rest
(`operators.executions`), and goes on with it whoever asked is gone by then.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paceline.control import resizings
from paceline.control.resizings import Resize
from paceline.engines.kubernetes import cpu_managers, kinds
from paceline.engines.kubernetes.clusters import NAMES_BYTES, ClusterError, Object
from paceline.errors import Conflict, EngineError, WaitTimeout
from paceline.model import adjustments, quantities
from paceline.model.adjustments import Adjustment
from paceline.model.jobs import JobSpec
from paceline.model.nodes import Node
from paceline.model.roles import ReplicaId
from paceline.model.runs import ADJUSTED
from paceline.services.operators.reconcilers import ADJUSTMENTS, adjustments_of
from paceline.stores import encodings

if TYPE_CHECKING:
    from paceline.services.cluster_jobs import ClusterJobs

#: Annotation: who changes or probes the job, and until when that is taken for true.
CHANGING = f"{kinds.TRAINING_JOBS.group}/changing"
#: For so long after it was said last.
LEASE_SECONDS = 60.0
#: An operator looks at a job at once when its resource changes; a kubelet takes some seconds.
ANSWER_SECONDS = 60.0
_SINCE = "Kubernetes resizes pods since 1.33 (beta) and 1.35 (stable)"


def check(jobs: ClusterJobs, spec: JobSpec, hosts: Mapping[ReplicaId, str], resize: Resize) -> None:
    """Let a resize pass that the cluster can give now.

    Args:
        jobs: those of the namespace.
        spec: the job as it is.
        hosts: the node of each replica.
        resize: what is asked for.

    Raises:
        EngineError: the cluster does not resize pods, or a node has not as much, or not at the moment.
        ClusterError: the cluster does not say.
    """
    check_version(jobs)
    nodes = {node.name: node for node in jobs.nodes()}
    for replica in resizings.targets(spec, resize):
        node = nodes.get(hosts.get(replica, ""))
        if node is not None:
            _check_room(replica, node, spec, resize)
            _check_static(jobs, replica, node.name, spec)


def check_version(jobs: ClusterJobs) -> None:
    """Let a cluster pass that resizes pods.

    Raises:
        EngineError: it does not.
    """
    known = json.loads(jobs.runner.run(jobs.cluster.read("/api/v1", limit_bytes=NAMES_BYTES)))
    if not any(each.get("name") == "pods/resize" for each in known.get("resources") or ()):
        raise EngineError("this cluster does not resize pods that run", _SINCE)


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


def _check_static(jobs: ClusterJobs, replica: ReplicaId, node: str, spec: JobSpec) -> None:
    """Refuse what a kubelet with a static CPU manager would: a pod whose requests equal its limits."""
    role = spec.role_of(replica)
    is_guaranteed = role.cpu_cores is None or round(role.cpu_cores * 1000) == role.requested_millicores
    if not is_guaranteed or role.cpu_cores is None:
        return
    with contextlib.suppress(ClusterError, ValueError):  # What is not known is found out by trying.
        manager = jobs.runner.run(cpu_managers.read(jobs.cluster, node))
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


def adjust(jobs: ClusterJobs, name: str, wanted: Sequence[Adjustment]) -> float:
    """Leave what replicas of a job are to have for a time, and wait until its operator has taken it up.

    Raises:
        WaitTimeout: the operator does not answer.
        ClusterError: the cluster refuses it.
    """
    now = jobs.clock()
    last = max((number for number, _ in jobs.events(name)), default=0)
    for resource in _tries(jobs, name):
        known = adjustments.current(adjustments_of(resource), now)
        text = encodings.encode(adjustments.merged(known, wanted))
        if _annotate(jobs, resource, {ADJUSTMENTS: text, **_renewed(resource, now)}):
            break
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        done = [each for _, each in jobs.events(name, since_id=last) if each.kind == ADJUSTED]
        if done:
            return done[0].at
        time.sleep(jobs.POLL_SECONDS)
    raise WaitTimeout(f"the operator has not answered for {ANSWER_SECONDS:g} s", f"paceline get {name}")


@contextlib.contextmanager
def changing(jobs: ClusterJobs, name: str, doing: str) -> Iterator[None]:
    """Keep others from changing a job: its resource says who does, and until when that is to be believed.

    Raises:
        Conflict: somebody else does.
        ClusterError: the cluster refuses it.
    """
    _take(jobs, name, doing)
    try:
        yield
    finally:
        with contextlib.suppress(ClusterError):  # It ends by itself.
            jobs.patch(name, {"metadata": {"annotations": {CHANGING: None}}})


def _take(jobs: ClusterJobs, name: str, doing: str) -> None:
    for resource in _tries(jobs, name):
        until, who, what = _changer(resource)
        if who not in ("", _myself()) and until > jobs.clock():
            raise Conflict(f"{name} is being {what} from {who}", "try again when that is over")
        if _annotate(jobs, resource, {CHANGING: _signed(doing, jobs.clock())}):
            return


def _renewed(resource: Object, now: float) -> Mapping[str, str]:
    """Return what says again that a job is being changed; empty: it is not, or by somebody else."""
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


def _tries(jobs: ClusterJobs, name: str) -> Iterator[Object]:
    """Yield a job's resource as it is, again and again: others may change it meanwhile."""
    for _ in range(20):
        yield jobs.resource(name)
    raise Conflict(f"{name} is changed all the time", "try again")


def _annotate(jobs: ClusterJobs, resource: Object, annotations: Mapping[str, str]) -> bool:
    """Set annotations of a resource; return whether it was still as it was read."""
    metadata = resource["metadata"]
    changes = {"resourceVersion": metadata["resourceVersion"], "annotations": annotations}
    try:
        jobs.patch(metadata["name"], {"metadata": changes})
    except ClusterError as error:
        if not error.is_conflict:
            raise
        return False
    return True
