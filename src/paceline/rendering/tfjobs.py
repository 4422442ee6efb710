"""A job as a TFJob of Kubeflow's training operator (v1).

The operator makes the pods of a role from one template and sets an index in their labels; names come from a
service that it makes for each replica. Source: ``pkg/apis/kubeflow.org/v1`` of kubeflow/training-operator.
"""

from __future__ import annotations

import math

from paceline.model import jobs
from paceline.model.jobs import JobSpec, RoleSpec
from paceline.model.roles import Role
from paceline.rendering import affinities, config_maps, labels, pods, services
from paceline.rendering.labels import Object
from paceline.rendering.surroundings import Surroundings

_NAMES = {Role.PS: "PS", Role.WORKER: "Worker", Role.CHIEF: "Chief", Role.EVALUATOR: "Evaluator"}
_RESTARTS = {
    jobs.RestartWhen.NEVER: "Never",
    jobs.RestartWhen.ON_FAILURE: "OnFailure",
    jobs.RestartWhen.ALWAYS: "Always",
}
#: The operator looks for a container and a port of these names.
_CONTAINER, _PORT = "tensorflow", "tfjob-port"
_INDEX_LABEL = "training.kubeflow.org/replica-index"


def objects(spec: JobSpec, where: Surroundings) -> list[Object]:
    """Return the config map of the agents and the TFJob."""
    metadata = labels.metadata(spec, spec.name, where)
    cluster = services.cluster(spec, where, subdomain=False)
    tfjob = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": metadata,
        "spec": {
            "runPolicy": _run_policy(spec, where.queue),
            "successPolicy": "AllWorkers" if spec.success is jobs.SuccessPolicy.ALL_WORKERS else "",
            "tfReplicaSpecs": {_NAMES[role.role]: _replicas(spec, role, where) for role in spec.roles},
        },
    }
    return [config_maps.config_map(spec, where, cluster), tfjob]


def _run_policy(spec: JobSpec, queue: str | None) -> Object:
    return labels.given(
        {
            "cleanPodPolicy": "All" if spec.clean_up is jobs.CleanUp.ALL else "Running",
            "activeDeadlineSeconds": _whole(spec.active_deadline_seconds),
            "ttlSecondsAfterFinished": _whole(spec.ttl_after_finished_seconds),
            "backoffLimit": max(role.restart.limit for role in spec.roles),
            "schedulingPolicy": labels.given({"queue": queue, "minAvailable": len(spec.replicas())}),
        }
    )


def _whole(seconds: float | None) -> int | None:
    return None if seconds is None else math.ceil(seconds)


def _replicas(spec: JobSpec, role: RoleSpec, where: Surroundings) -> Object:
    index = {
        "name": pods.INDEX_VARIABLE,
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{_INDEX_LABEL}']"}},
    }
    body = pods.pod_spec(
        spec,
        where,
        role,
        arguments=config_maps.arguments(role.role, f"$({pods.INDEX_VARIABLE})", 1),
        affinity=affinities.of_role(spec, role.role),
        container={
            "name": _CONTAINER,
            "env": [index],
            "ports": [{"name": _PORT, "containerPort": services.PORT}],
        },
    )
    own = {**spec.labels, **labels.of_role(spec, role.role)}
    return {
        "replicas": role.replicas,
        "restartPolicy": _RESTARTS[role.restart.when],
        "template": {"metadata": {"labels": own}, "spec": body},
    }
