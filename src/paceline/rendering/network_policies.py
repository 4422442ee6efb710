"""Who may connect to the replicas of a job.

A TensorFlow server asks no client who it is, and each client that reaches its port reads and writes files
as the job's user. So only pods of the same job reach a replica, on any port: scripts may have ports of their
own. Policies add up, so whatever else is to connect (an ingress to TensorBoard, say) gets a policy of its
own.
"""

from __future__ import annotations

from paceline.model.jobs.job_specs import JobSpec
from paceline.rendering import labels
from paceline.rendering.config_maps import METRICS_PORT
from paceline.rendering.labels import Object
from paceline.rendering.surroundings import Surroundings


def policy(spec: JobSpec, where: Surroundings) -> Object:
    """Return the policy of a job.

    The agents' port is open to all: operator and server ask through the API server's proxy, whose address
    within the network is the provider's matter, and Prometheus may be anywhere.
    """
    own = {"matchLabels": {labels.JOB: spec.name}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": labels.metadata(spec, spec.name, where),
        "spec": {
            "podSelector": own,
            "policyTypes": ["Ingress"],
            "ingress": [
                {"from": [{"podSelector": own}]},
                {"ports": [{"port": METRICS_PORT, "protocol": "TCP"}]},
            ],
        },
    }
