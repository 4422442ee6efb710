"""The network policy of a job: which clients may connect to its replicas.

A TensorFlow server does not authenticate clients, and any client that reaches its port can read and write
files as the job's user. Therefore only pods of the same job may connect to a replica. They may use any port,
because scripts may open ports of their own. Network policies are additive: an additional client (such as an
ingress to TensorBoard) needs a policy of its own.
"""

from __future__ import annotations

from paceline.model.jobs.job_specs import JobSpec
from paceline.rendering import labels
from paceline.rendering.config_maps import METRICS_PORT
from paceline.rendering.labels import Object
from paceline.rendering.surroundings import Surroundings


def policy(spec: JobSpec, where: Surroundings) -> Object:
    """Return the policy of a job.

    The agents' port is open to all clients unless some are named. The operator and the server read agents
    through the API server's proxy, whose network address depends on the provider, and Prometheus may run
    anywhere.
    """
    same_job = {"matchLabels": labels.of_job(spec, where)}
    agents: Object = {"ports": [{"port": METRICS_PORT, "protocol": "TCP"}]}
    if where.agent.clients:
        agents["from"] = [_peer(client) for client in where.agent.clients]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": labels.metadata(spec, spec.name, where),
        "spec": {
            "podSelector": same_job,
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": same_job}]}, agents],
        },
    }


def _peer(client: str) -> Object:
    """Return a network or a namespace as policies name it; only networks have a length behind a slash."""
    if "/" in client:
        return {"ipBlock": {"cidr": client}}
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": client}}}
