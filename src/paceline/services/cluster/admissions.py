"""Admits jobs to a cluster: a job begins only when there is room for all of its replicas."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from paceline.control.reconciliations import ReconcileProgress
from paceline.control.states import ReplicaState
from paceline.engines.kubernetes import cluster_states, kinds, pod_states
from paceline.engines.kubernetes.clusters import Cluster, Object
from paceline.engines.kubernetes.mirrors import Key
from paceline.model.jobs.job_specs import FitPolicy, JobSpec
from paceline.model.jobs.nodes import Node, Quota, Resources
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import ReplicaId, Role
from paceline.scheduling import fits, growths, items, queues
from paceline.scheduling.fits import Blocker
from paceline.scheduling.node_groups import NodeGroups
from paceline.scheduling.queues import QueuedJob
from paceline.scheduling.quota_books import QuotaBook
from paceline.services.cluster.records import JobRecord

_NODES_SHOWN = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Applicant:
    """A job that waits for room to begin."""

    uid: str
    key: Key
    spec: JobSpec
    since: float

    @property
    def request(self) -> tuple[JobSpec, int]:
        """What room is requested for: the job, and how many of its replicas have none."""
        return self.spec, len(self.spec.replicas())

    @property
    def namespace(self) -> str:
        """The namespace whose quotas apply."""
        return self.key[0]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Growing:
    """A running job that is to have more workers.

    Attributes:
        record: the state of the job.
        pods: its pods.
        workers: how many workers it is to have.
    """

    uid: str
    key: Key
    record: JobRecord
    pods: Sequence[Object]
    workers: int

    @property
    def request(self) -> tuple[JobSpec, int]:
        """What room is requested for: the job, and how many of its replicas have none."""
        return self.record.state.spec, len(self.new)

    @property
    def new(self) -> list[ReplicaId]:
        """The workers that it does not have yet."""
        spec = self.record.state.spec
        return [each for each in spec.with_workers(self.workers).replicas() if not spec.has(each)]

    def with_room(self, room: Mapping[ReplicaId, str]) -> JobRecord:
        """Return the record of the job with its new workers waiting to begin on the nodes of ``room``."""
        state = self.record.state
        kept = (each for each in state.replicas if each.replica not in room)
        fresh = (ReplicaState(replica=each) for each in room)
        progress = ReconcileProgress(state=dataclasses.replace(state, replicas=(*kept, *fresh)))
        return JobRecord(progress=progress, places={**self.record.places, **room})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionVerdict:
    """The decision on a job: it may begin in ``room``, waits (``held`` says why), or is ``refused``."""

    room: Mapping[ReplicaId, str] | None = None
    held: str = ""
    refused: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRoom:
    """What a cluster has room for.

    Attributes:
        nodes: the nodes, with what the pods on them use.
        without_jobs: the nodes, with what pods that belong to no job use.
        quotas: what is left of the quotas, by namespace.
        revision: another number when anything has changed.
    """

    nodes: Sequence[Node]
    without_jobs: Sequence[Node]
    quotas: Mapping[str, Sequence[Quota]]
    revision: int = 0


def decide(
    room: ClusterRoom,
    applicants: Sequence[Applicant],
    begun: Iterable[tuple[str, JobRecord, Sequence[Object]]],
    growing: Sequence[Growing],
    now: float,
) -> dict[str, AdmissionVerdict]:
    """Return a verdict on each job that wants room, by the job's uid.

    Args:
        room: what the cluster has room for.
        applicants: the waiting jobs.
        begun: the jobs that have begun, each with its namespace and its pods. Replicas that are not bound to
            a node yet, or will be restarted, keep the room that they were promised.
        growing: running jobs that want more workers; all waiting jobs are served before them.
        now: Unix seconds.
    """
    nodes, empty = NodeGroups(room.nodes), NodeGroups(room.without_jobs)
    quotas = QuotaBook(room.quotas)
    for namespace, record, job_pods in begun:
        nodes.take(record.state.spec, promised(record, job_pods))
        if quotas.of(namespace):
            quotas.take(namespace, _without_pods(record, job_pods))
    waiting = [_waiting(each) for each in applicants]
    admitted = {each.key: each.places for each in queues.admit(waiting, nodes, empty, quotas, now)}
    verdicts = {
        each.uid: AdmissionVerdict(room=admitted[each.uid])
        if each.uid in admitted
        else _rejected(each, nodes, quotas.of(each.namespace))
        for each in applicants
    }
    if not growing:
        return verdicts
    overdue = [
        (queued_job, queues.is_over_quota(queued_job, quotas))
        for queued_job in waiting
        if queued_job.key not in admitted and queues.is_overdue(queued_job, empty, now)
    ]
    for wish in growing:
        spec = wish.record.state.spec
        if any(
            job.priority >= spec.scheduling.priority and (not is_over_quota or job.namespace == wish.key[0])
            for job, is_over_quota in overdue
        ):
            verdicts[wish.uid] = AdmissionVerdict(held="a job that waits for long needs the room")
            continue
        verdicts[wish.uid] = _grown(wish, nodes, quotas.of(wish.key[0]))
        places = verdicts[wish.uid].room or {}
        nodes.take(spec, places)
        quotas.take(wish.key[0], items.total_of(spec, places))
    return verdicts


async def look(cluster: Cluster, namespace: str) -> cluster_states.ClusterState:
    """Return the resources of a cluster, how much of them is taken, and the quotas of a namespace.

    Raises:
        ClusterError: the cluster cannot be read.
    """
    listed = [
        each
        for kind, where in ((kinds.NODES, None), (kinds.PODS, None), (kinds.QUOTAS, namespace))
        for each in (await cluster.list(kind, namespace=where)).objects
    ]
    return cluster_states.read(listed, namespace)


def promised(record: JobRecord, pods: Iterable[Object]) -> dict[ReplicaId, str]:
    """Return the node on which room is kept for each replica that has no live pod bound to a node yet."""
    bound = {
        found[0]
        for pod in pods
        if (found := pod_states.attempt_of(pod)) is not None
        and (pod.get("spec") or {}).get("nodeName")
        and (pod.get("status") or {}).get("phase") not in cluster_states.ENDED
    }
    if record.state.phase.is_final:
        return {}
    waiting = (each.replica for each in record.state.replicas if not each.phase.is_final)
    return {
        replica: record.places[replica]
        for replica in waiting
        if replica in record.places and replica not in bound
    }


def _without_pods(record: JobRecord, pods: Iterable[Object]) -> Resources:
    """Return what the replicas of a begun job request whose pods are still to be made; quotas count pods."""
    phase = record.state.phase
    if phase.is_final or (phase is JobPhase.PENDING and not record.places):
        return Resources()  # It has no room yet.
    there = {
        found[0]
        for pod in pods
        if (found := pod_states.attempt_of(pod)) is not None
        and (pod.get("status") or {}).get("phase") not in cluster_states.ENDED
    }
    spec = record.state.spec
    coming = (each.replica for each in record.state.replicas if not each.phase.is_final)
    return items.total_of(spec, (each for each in coming if each not in there and spec.has(each)))


def _waiting(each: Applicant) -> QueuedJob:
    return QueuedJob(
        key=each.uid,
        spec=each.spec,
        since=each.since,
        priority=each.spec.scheduling.priority,
        namespace=each.namespace,
    )


def _rejected(each: Applicant, nodes: NodeGroups, quotas: Sequence[Quota]) -> AdmissionVerdict:
    found = fits.fit(each.spec, nodes, quotas)
    reasons = "; ".join(map(_words, found.blockers))
    if not reasons:
        return AdmissionVerdict(held="it waits for a job before it that needs more room")
    if each.spec.scheduling.fit is FitPolicy.FAIL:
        return AdmissionVerdict(refused=f"it does not fit: {reasons}")
    return AdmissionVerdict(held=f"it waits for room: {reasons}")


def _grown(each: Growing, nodes: NodeGroups, quotas: Sequence[Quota]) -> AdmissionVerdict:
    spec, new = each.record.state.spec, each.new
    bound = {
        found[0]: str(pod["spec"]["nodeName"])
        for pod in each.pods
        if (found := pod_states.attempt_of(pod)) is not None and (pod.get("spec") or {}).get("nodeName")
    }
    ps_nodes = {replica: node for replica, node in bound.items() if replica.role is Role.PS}
    places = growths.places(spec, new, nodes, quotas, ps_nodes)
    if places is None:
        return AdmissionVerdict(held=f"there is no room for {len(new)} more")
    return AdmissionVerdict(room=places)


def _words(blocker: Blocker) -> str:
    what = f"{blocker.missing} more {blocker.what}: " if blocker.what else ""
    if not blocker.nodes:
        return f"{what}{blocker.reason}"
    shown = ", ".join(blocker.nodes[:_NODES_SHOWN])
    more = len(blocker.nodes) - _NODES_SHOWN
    return f"{what}{blocker.reason} on {shown}{f' and {more} more' if more > 0 else ''}"
