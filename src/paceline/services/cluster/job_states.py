"""Gathers what is known of a job on a Kubernetes cluster, for `diagnosing`.

What the user has no right to read is left out and listed as unknown.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paceline.diagnosing.situations import Room, Situation
from paceline.engines.kubernetes import kinds, leases, obstacles, pod_states, queue_waits, times
from paceline.engines.kubernetes.clusters import Cluster, ClusterError, Object
from paceline.engines.kubernetes.kinds import ResourceKind
from paceline.errors import InvalidInput
from paceline.model.explanations.causes import Evidence
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.obstacles import Obstacle
from paceline.model.jobs.queue_waits import QueueWait
from paceline.model.jobs.runs import JobEvent, ReplicaRow
from paceline.model.jobs.statuses import JobPhase
from paceline.rendering import kueue, labels
from paceline.scheduling import fits
from paceline.scheduling.node_groups import NodeGroups
from paceline.services.cluster import admissions, records, runs
from paceline.specs.job_file import custom_resources

#: How long a new job may be without a status before the operator counts as absent.
UNSEEN_SECONDS = 10.0


class KnownJob(NamedTuple):
    """What is known of a job without looking at the rest of the cluster."""

    resource: Object
    replicas: Sequence[ReplicaRow]
    events: Sequence[JobEvent]
    unknown: Sequence[str] = ()


async def look(cluster: Cluster, job: KnownJob, now: float) -> Situation:
    """Return the situation of a job.

    Raises:
        ClusterError: the cluster cannot be read, for another reason than a missing right.
    """
    resource = job.resource
    metadata, progress = resource["metadata"], runs.progress(resource)
    spec, wrong = _spec(resource)
    unknown = list(job.unknown)
    room = None
    queue = None if spec is None else spec.scheduling.queue
    if spec is not None and queue is None and progress["phase"] is JobPhase.PENDING:
        with allowed(unknown, "whether it fits"):
            room = await _room(cluster, resource, spec, unknown)
    queue_wait = None
    if queue is not None and not progress["phase"].is_final:
        with allowed(unknown, f"whether it waits in the queue {queue}"):
            queue_wait = await _queue_wait(cluster, resource, queue)
    silent: dict[str, float] = {}
    with allowed(unknown, "whether its nodes answer"):
        silent = pod_states.silent_nodes((await cluster.list(kinds.NODES)).objects)
    return Situation(
        name=metadata["name"],
        engine="kubernetes",
        **{**progress, "message": progress["message"] or wrong},
        now=now,
        spec=spec,
        replicas=job.replicas,
        events=job.events,
        is_suspended=bool((resource.get("spec") or {}).get(custom_resources.SUSPEND)),
        left_alone=records.trouble(resource.get("status") or {}),
        unattended=await _unattended(cluster, resource, now, unknown),
        room=room,
        queue_wait=queue_wait,
        obstacles=await _obstacles(cluster, metadata["namespace"], metadata["name"], silent, unknown),
        unknown=tuple(unknown),
    )


def _spec(resource: Object) -> tuple[JobSpec | None, str]:
    try:
        return custom_resources.job_spec(resource), ""
    except InvalidInput as error:
        return None, error.message


@contextlib.contextmanager
def allowed(unknown: list[str], what: str) -> Iterator[None]:
    """Add ``what`` to ``unknown`` if it could not be read because a right is missing."""
    try:
        yield
    except ClusterError as error:
        if not error.is_forbidden:
            raise
        unknown.append(f"{what}: {error.message}")


async def _room(cluster: Cluster, resource: Object, spec: JobSpec, unknown: list[str]) -> Room:
    """Return whether a job fits on the cluster now, which jobs are served before it, and which jobs run."""
    metadata = resource["metadata"]
    state = await admissions.look(cluster, metadata["namespace"])
    others: list[Object] = []
    with allowed(unknown, "which jobs of other namespaces wait or run"):
        others = list((await cluster.list(kinds.TRAINING_JOBS)).objects)
    waiting = sorted((job for job in others if _waits(job)), key=_order)
    ahead = [job for job in waiting if _order(job) < _order(resource)]
    running = [job for job in others if _runs(job)]
    return Room(
        fit=fits.fit(spec, NodeGroups(state.nodes), state.quotas),
        ahead=tuple(_called(job, metadata["namespace"]) for job in ahead),
        running=tuple(_called(job, metadata["namespace"]) for job in running),
    )


async def _queue_wait(cluster: Cluster, resource: Object, queue: str) -> QueueWait | None:
    """Return how a job waits in a queue of Kueue or Volcano; None: it does not.

    Raises:
        ClusterError: neither says that it waits, and one of them cannot be read.
    """
    namespace, job = resource["metadata"]["namespace"], resource["metadata"]["name"]
    group = kueue.group_name(job, records.resumes(resource.get("status") or {}))
    unread = None
    for kind in (kinds.WORKLOADS, kinds.OLD_WORKLOADS, kinds.POD_GROUPS):
        try:
            found = (await cluster.list(kind, namespace=namespace)).objects
        except ClusterError as error:
            if not error.is_missing:  # else the system is not installed
                unread = error
            continue
        is_volcano = kind is kinds.POD_GROUPS
        read, name = (queue_waits.in_volcano, job) if is_volcano else (queue_waits.in_kueue, group)
        wait = read(name, queue, found)
        if wait is not None:
            return wait
    if unread is not None:
        raise unread
    return None


def _waits(resource: Object) -> bool:
    phase = (resource.get("status") or {}).get("phase", JobPhase.PENDING)
    return phase == JobPhase.PENDING and not (resource.get("spec") or {}).get(custom_resources.SUSPEND)


def _runs(resource: Object) -> bool:
    phase = runs.progress(resource)["phase"]
    return phase is not JobPhase.PENDING and not phase.is_final


def _order(resource: Object) -> tuple[int, float, str]:
    """Return the key that sorts jobs into the order in which they are served, as in `scheduling.queues`."""
    metadata = resource["metadata"]
    scheduling = (resource.get("spec") or {}).get("scheduling") or {}
    priority = scheduling.get("priority") if isinstance(scheduling, dict) else None
    rank = -priority if isinstance(priority, int) else 0
    return rank, times.seconds(metadata["creationTimestamp"]), str(metadata["uid"])


def _called(resource: Object, namespace: str) -> str:
    metadata = resource["metadata"]
    elsewhere = metadata["namespace"] != namespace
    return f"{metadata['namespace']}/{metadata['name']}" if elsewhere else str(metadata["name"])


async def _obstacles(
    cluster: Cluster, namespace: str, job: str, silent: dict[str, float], unknown: list[str]
) -> list[Obstacle]:
    listed: dict[ResourceKind, list[Object]] = {kinds.PODS: [], kinds.EVENTS: []}
    selectors = {kinds.PODS: f"{labels.JOB}={job}", kinds.EVENTS: ""}
    for kind, what in ((kinds.PODS, "its pods"), (kinds.EVENTS, "what was told of its pods")):
        with allowed(unknown, what):
            found = await cluster.list(kind, namespace=namespace, selector=selectors[kind])
            listed[kind] = found.objects
    return obstacles.read(job, listed[kinds.PODS], listed[kinds.EVENTS], silent)


async def _unattended(
    cluster: Cluster, resource: Object, now: float, unknown: list[str]
) -> tuple[Evidence, ...]:
    """Return the evidence that no operator runs: its lease, or else a job without a status."""
    holdings: list[leases.LeaseHolding] = []
    with allowed(unknown, "whether an operator holds the lease"):
        holdings = await leases.holdings(cluster, leases.OPERATOR)
    if holdings:
        last = holdings[0]
        if last.is_held(now):
            return ()
        where = f"{last.namespace}/{leases.OPERATOR}"
        text = f"no operator {'renews' if last.holder else 'holds'} the lease {where}"
        return (Evidence(text=text, at=last.renewed_at),)
    if resource.get("status"):
        return ()
    age = now - times.seconds(resource["metadata"]["creationTimestamp"])
    if age <= UNSEEN_SECONDS:
        return ()
    return (Evidence(text=f"no operator has looked at the job in {age:.0f} s"),)
