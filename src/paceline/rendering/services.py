"""The headless Service of a job, which gives every replica a DNS name."""

from __future__ import annotations

from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import ReplicaId
from paceline.rendering import labels
from paceline.rendering.labels import Object
from paceline.rendering.surroundings import Surroundings

PORT = 2222


def service(spec: JobSpec, where: Surroundings) -> Object:
    """Return the Service; it publishes replicas before they are ready, because they wait for each other."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": labels.metadata(spec, spec.name, where),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": labels.of_job(spec, where),
            # Server-side apply identifies ports by number and protocol, and has a default for neither.
            "ports": [{"name": "training", "port": PORT, "protocol": "TCP"}],
        },
    }


def spare_workers(spec: JobSpec, where: Surroundings) -> list[str]:
    """Return the addresses of the workers that the job may get while it runs."""
    return [_address(spec, replica, f"{spec.name}.{where.namespace}") for replica in spec.spares()]


def cluster(spec: JobSpec, where: Surroundings, *, subdomain: bool = True) -> dict[str, list[str]]:
    """Return the addresses of all replicas by role; they stay the same for every attempt.

    Args:
        spec: the job.
        where: the job's surroundings in the cluster.
        subdomain: whether all replicas have names under the job's Service; else each has its own Service.
    """
    domain = f"{spec.name}.{where.namespace}" if subdomain else where.namespace
    return {
        str(role.role): [
            _address(spec, ReplicaId(role.role, index), domain) for index in range(role.replicas)
        ]
        for role in spec.roles
    }


def _address(spec: JobSpec, replica: ReplicaId, domain: str) -> str:
    return f"{labels.host_name(spec, replica)}.{domain}.svc:{PORT}"
