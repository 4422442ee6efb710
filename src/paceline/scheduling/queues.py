"""Admission of waiting jobs: whole or not at all, by priority and age, and without starving any job.

Smaller jobs may overtake a job that does not fit now, but only for `PATIENCE_SECONDS`: after that, no job
behind it starts until it fits. A job that would not fit even if no other job ran keeps no job waiting. A job
that a quota stops keeps only those of its own namespace waiting: no other namespace can make room for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import ReplicaId
from paceline.scheduling import fits
from paceline.scheduling.items import total
from paceline.scheduling.node_groups import NodeGroups
from paceline.scheduling.quota_books import QuotaBook

PATIENCE_SECONDS = 300.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """A job that waits; times are Unix seconds.

    Attributes:
        key: the identity of the job.
        priority: jobs with a higher priority come first.
        since: when it began to wait; of jobs with equal priority the oldest comes first.
        namespace: whose quotas it takes from.
    """

    key: str
    spec: JobSpec
    since: float
    priority: int = 0
    namespace: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A job that may start, and the node of each of its replicas."""

    key: str
    places: Mapping[ReplicaId, str]


def admit(
    waiting: Iterable[QueuedJob], nodes: NodeGroups, empty: NodeGroups, quotas: QuotaBook, now: float
) -> list[Admission]:
    """Return the jobs that may start now, which take their room of ``nodes`` and ``quotas``.

    Args:
        waiting: the waiting jobs.
        nodes: the nodes as they are, less what is promised to starting jobs.
        empty: the same nodes as they would be without these jobs and without running jobs.
        quotas: the quotas as they are, less what is promised to starting jobs.
        now: Unix seconds.
    """
    admitted: list[Admission] = []
    held: set[str] = set()  # Namespaces whose quotas stop an overdue job.
    for job in sorted(waiting, key=lambda job: (-job.priority, job.since, job.key)):
        if job.namespace in held:
            continue
        places = fits.places(job.spec, nodes, quotas.of(job.namespace))
        if places is not None:
            admitted.append(Admission(key=job.key, places=places))
            nodes.take(job.spec, places)
            quotas.take(job.namespace, total(job.spec))
        elif is_overdue(job, empty, now):
            if not is_over_quota(job, quotas):
                break
            held.add(job.namespace)
    return admitted


def is_overdue(job: QueuedJob, empty: NodeGroups, now: float) -> bool:
    """Whether a job that does not fit has waited so long that jobs behind it may not start."""
    return now - job.since > PATIENCE_SECONDS and fits.places(job.spec, empty) is not None


def is_over_quota(job: QueuedJob, quotas: QuotaBook) -> bool:
    """Whether the quotas of its namespace stop a job, however much room there is on nodes."""
    return fits.is_over_quota(job.spec, quotas.of(job.namespace))
