"""Names and labels of the Kubernetes objects that belong to a job."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from paceline.model.jobs import job_specs
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import ReplicaId, Role
from paceline.rendering.surroundings import Surroundings

JOB, UID, ROLE, INDEX, ATTEMPT, GROUP = (
    f"{job_specs.API_VERSION.split('/')[0]}/{name}"
    for name in ("job", "job-uid", "role", "index", "attempt", "group")
)

MANAGED_BY = "app.kubernetes.io/managed-by"

Object = dict[str, Any]


def metadata(spec: JobSpec, name: str, where: Surroundings, own: Mapping[str, str] | None = None) -> Object:
    """Return the metadata of an object of a job; Paceline's own labels override the user's."""
    labels = {**spec.labels, MANAGED_BY: "paceline", **of_job(spec, where), **(own or {})}
    return {"name": name, "namespace": where.namespace, "labels": labels}


def of_job(spec: JobSpec, where: Surroundings) -> dict[str, str]:
    """Return the labels that the pods of a job have, and no others."""
    return {JOB: spec.name} if where.job_uid is None else {JOB: spec.name, UID: where.job_uid}


def of_role(spec: JobSpec, role: Role) -> dict[str, str]:
    """Return the labels by which placement selects the replicas of a role."""
    return {JOB: spec.name, ROLE: str(role)}


#: The length limit of a DNS label (RFC 1035), and so of a host name, a Service name and a label value.
MOST_CHARACTERS = 63


def host_name(spec: JobSpec, replica: ReplicaId) -> str:
    """Return the host name of a replica, which is the same for every attempt.

    The name has to be unique only within the job's own domain, so a long job name may be cut.
    """
    room = MOST_CHARACTERS - len(f"-{replica}")
    return f"{spec.name[:room].rstrip('-')}-{replica}"


def pod_name(job: str, replica: ReplicaId, attempt: int) -> str:
    """Return the pod name of an attempt; the API server refuses a second pod of the same name."""
    return f"{job}-{replica}-{attempt}"


def whole(seconds: float | None) -> int | None:
    """Return seconds as an integer, as Kubernetes expects them, rounded up."""
    return None if seconds is None else math.ceil(seconds)


def restart_limit(spec: JobSpec) -> int:
    """Return the largest restart limit of the roles, for an operator with one limit for the whole job."""
    return max(role.restart.limit for role in spec.roles)


def given(fields: Mapping[str, Any]) -> Object:
    """Return the fields without those that are None or empty."""
    return {name: value for name, value in fields.items() if value not in (None, {}, [], ())}
