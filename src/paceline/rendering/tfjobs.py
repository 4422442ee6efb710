"""A job as a TFJob of Kubeflow's training operator (v1).

The operator makes the pods of a role from one template and sets their indices in a label. It also makes a
Service for each replica, which gives the replica its name. Source: ``pkg/apis/kubeflow.org/v1`` of
kubeflow/training-operator.
"""

from __future__ import annotations

from paceline.errors import InvalidInput
from paceline.model.jobs import job_specs
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.roles import Role
from paceline.rendering import config_maps, labels, network_policies, pods, services
from paceline.rendering.labels import Object
from paceline.rendering.surroundings import Surroundings

API_VERSION = "kubeflow.org/v1"
NAMES = {Role.PS: "PS", Role.WORKER: "Worker", Role.CHIEF: "Chief", Role.EVALUATOR: "Evaluator"}
RESTARTS = {
    job_specs.RestartWhen.NEVER: "Never",
    job_specs.RestartWhen.ON_FAILURE: "OnFailure",
    job_specs.RestartWhen.ALWAYS: "Always",
}
#: The names by which the operator finds the container and its port.
CONTAINER, PORT = "tensorflow", "tfjob-port"
_INDEX_VARIABLE, _INDEX_LABEL = "PACELINE_INDEX", "training.kubeflow.org/replica-index"


def objects(spec: JobSpec, where: Surroundings) -> list[Object]:
    """Return the network policy, the config map of the agents and the TFJob.

    Raises:
        InvalidInput: the operator could not make a Service for each replica, because a name is too long.
    """
    names = [f"{spec.name}-{replica}" for replica in spec.replicas()]
    longest = max(names, key=len)
    if len(longest) > labels.MOST_CHARACTERS:
        raise InvalidInput(
            f"Kubeflow makes a Service {longest}, and its name may have {labels.MOST_CHARACTERS} characters",
            f"a shorter metadata.name, by {len(longest) - labels.MOST_CHARACTERS} characters",
        )
    metadata = labels.metadata(spec, spec.name, where)
    cluster = services.cluster(spec, where, subdomain=False)
    tfjob = {
        "apiVersion": API_VERSION,
        "kind": "TFJob",
        "metadata": metadata,
        "spec": labels.given(
            {
                "runPolicy": _run_policy(spec),
                # By default, the chief decides.
                "successPolicy": "AllWorkers"
                if spec.success is job_specs.SuccessPolicy.ALL_WORKERS
                else None,
                "tfReplicaSpecs": {NAMES[role.role]: _replicas(spec, role, where) for role in spec.roles},
            }
        ),
    }
    told = config_maps.config_map(spec, where, cluster)
    return [network_policies.policy(spec, where), told, tfjob]


def _run_policy(spec: JobSpec) -> Object:
    return labels.given(
        {
            "cleanPodPolicy": "All" if spec.clean_up is job_specs.CleanUp.ALL else "Running",
            "activeDeadlineSeconds": labels.whole(spec.active_deadline_seconds),
            "ttlSecondsAfterFinished": labels.whole(spec.ttl_after_finished_seconds),
            "backoffLimit": labels.restart_limit(spec),
            "schedulingPolicy": labels.given(
                {
                    "queue": spec.scheduling.queue,
                    "minAvailable": len(spec.replicas()),
                    "priorityClass": spec.scheduling.priority_class,
                }
            ),
        }
    )


def _replicas(spec: JobSpec, role: RoleSpec, where: Surroundings) -> Object:
    index = {
        "name": _INDEX_VARIABLE,
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{_INDEX_LABEL}']"}},
    }
    container = {
        "name": CONTAINER,
        "env": [index, *pods.withheld(spec)],
        "ports": [{"name": PORT, "containerPort": services.PORT}],
    }
    return {
        "replicas": role.replicas,
        "restartPolicy": RESTARTS[role.restart.when],
        "template": pods.template(spec, where, role, _INDEX_VARIABLE, container),
    }
