"""How objects of the Kubernetes API that belong to a job are called and labelled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from paceline.model.jobs import job_specs
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import ReplicaId, Role
from paceline.rendering.surroundings import Surroundings

JOB, ROLE, INDEX, ATTEMPT, GROUP = (
    f"{job_specs.API_VERSION.split('/')[0]}/{name}" for name in ("job", "role", "index", "attempt", "group")
)

MANAGED_BY = "app.kubernetes.io/managed-by"

Object = dict[str, Any]


def metadata(spec: JobSpec, name: str, where: Surroundings, own: Mapping[str, str] | None = None) -> Object:
    """Return the metadata of an object of a job; Paceline's own labels win over the user's."""
    labels = {**spec.labels, MANAGED_BY: "paceline", JOB: spec.name, **(own or {})}
    return {"name": name, "namespace": where.namespace, "labels": labels}


def of_role(spec: JobSpec, role: Role) -> dict[str, str]:
    """Return the labels by which placement knows the replicas of a role."""
    return {JOB: spec.name, ROLE: str(role)}


#: Of a label of DNS (RFC 1035), and so of a host, a Service and a label's value.
MOST_CHARACTERS = 63


def host_name(spec: JobSpec, replica: ReplicaId) -> str:
    """Return the name of a replica's host, the same for every attempt.

    It is one of the job's own domain, so that a long name of a job may be cut.
    """
    room = MOST_CHARACTERS - len(f"-{replica}")
    return f"{spec.name[:room].rstrip('-')}-{replica}"


def pod_name(job: str, replica: ReplicaId, attempt: int) -> str:
    """Return the name of the pod of an attempt: the API refuses a second one."""
    return f"{job}-{replica}-{attempt}"


def whole(seconds: float | None) -> int | None:
    """Return seconds as Kubernetes takes them."""
    return None if seconds is None else math.ceil(seconds)


def restart_limit(spec: JobSpec) -> int:
    """Return the limit of a job whose operator has one for all roles: the largest."""
    return max(role.restart.limit for role in spec.roles)


def given(fields: Mapping[str, Any]) -> Object:
    """Return the fields that say something."""
    return {name: value for name, value in fields.items() if value not in (None, {}, [], ())}
