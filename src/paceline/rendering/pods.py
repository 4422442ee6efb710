"""Replicas as pods.

A pod that Paceline itself makes never restarts its container: each attempt is a pod of its own, so that
earlier attempts can be inspected.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from paceline.model.jobs import code_sources, job_specs
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.placements import Toleration
from paceline.model.roles import ReplicaId
from paceline.rendering import (
    affinities,
    agent_secrets,
    agents,
    config_maps,
    labels,
    securities,
    services,
    sizes,
)
from paceline.rendering.agents import AgentDelivery
from paceline.rendering.labels import Object
from paceline.rendering.surroundings import Surroundings

#: The init container that fetches the code, and the container of the replica.
CODE_CONTAINER, TRAINING = "code", sizes.TRAINING
_CONFIG, _PACKED, _SCRATCH = "paceline-config", "paceline-code", "paceline-tmp"
OWN_VOLUMES = (*agents.VOLUMES, _CONFIG, _PACKED, _SCRATCH)
#: The name of the metrics port, and the annotations by which a Prometheus can discover pods.
METRICS = "metrics"
SCRAPED = {
    "prometheus.io/scrape": "true",
    "prometheus.io/port": str(config_maps.METRICS_PORT),
    "prometheus.io/path": "/metrics",
}
#: The time that the agent needs to finish after it has killed the command.
SLACK_SECONDS = 5


def pod(
    spec: JobSpec,
    replica: ReplicaId,
    where: Surroundings,
    *,
    attempt: int = 1,
    memory_bytes: int | None = None,
    node: str | None = None,
) -> Object:
    """Return the pod of one attempt of a replica.

    Args:
        spec: the job.
        replica: the replica.
        where: the job's surroundings in the cluster.
        attempt: number of the attempt, from 1.
        memory_bytes: memory of the replica; None: the memory that its role asks for.
        node: the node on which the pod has to run; None: the scheduler decides.
    """
    role = spec.role_of(replica)
    host = labels.host_name(spec, replica)
    replica_labels = {
        labels.ROLE: str(replica.role),
        labels.INDEX: str(replica.index),
        labels.ATTEMPT: str(attempt),
    }
    group = affinities.group(spec, replica)
    if group is not None:
        replica_labels[labels.GROUP] = str(group)
    body = pod_spec(
        spec,
        where,
        dataclasses.replace(role, memory_bytes=memory_bytes or role.memory_bytes),
        arguments=config_maps.arguments(
            replica.role, replica.index, attempt, has_token=where.has_agent_token
        ),
        affinity=affinities.affinity(spec, replica, node),
    )
    metadata = labels.metadata(spec, labels.pod_name(spec.name, replica, attempt), where, replica_labels)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "annotations": {**SCRAPED}},
        "spec": {"hostname": host, "subdomain": spec.name, "restartPolicy": "Never", **body},
    }


def template(
    spec: JobSpec, where: Surroundings, role: RoleSpec, index_variable: str, container: Object | None = None
) -> Object:
    """Return the template for all pods of a role, for an operator that makes the pods.

    Args:
        spec: the job.
        where: the job's surroundings in the cluster.
        role: the role.
        index_variable: environment variable of the container that holds the replica's index.
        container: container fields that override those set here.
    """
    body = pod_spec(
        spec,
        where,
        role,
        arguments=config_maps.arguments(role.role, f"$({index_variable})", 1),
        affinity=affinities.of_role(spec, role.role),
        container=container,
    )
    own = {**spec.labels, **labels.of_role(spec, role.role)}
    return {"metadata": {"labels": own, "annotations": {**SCRAPED}}, "spec": body}


def pod_spec(
    spec: JobSpec,
    where: Surroundings,
    role: RoleSpec,
    *,
    arguments: Sequence[str],
    affinity: Object,
    container: Object | None = None,
) -> Object:
    """Return the pod spec that all pods of a role share, whichever program makes the pods.

    Args:
        spec: the job.
        where: the job's surroundings in the cluster.
        role: the role.
        arguments: arguments of the agent.
        affinity: affinity of the pods.
        container: container fields that override those set here.
    """
    resources = sizes.resources(role)
    how = agents.delivery(where, spec.command_of(role.role))
    return labels.given(
        {
            "terminationGracePeriodSeconds": math.ceil(spec.termination_grace_seconds) + SLACK_SECONDS,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": securities.of_pod(spec.security),
            "initContainers": _init_containers(spec, where, how, resources),
            "containers": [{**_container(spec, role, how, arguments), **(container or {})}],
            "volumes": _volumes(spec, where, how),
            "priorityClassName": spec.scheduling.priority_class,
            "nodeSelector": dict(spec.placement.node_selector),
            "tolerations": [_toleration(each) for each in spec.placement.tolerations],
            "affinity": affinity,
        }
    )


def _init_containers(
    spec: JobSpec, where: Surroundings, how: AgentDelivery, resources: Object
) -> list[Object]:
    image = where.agent.image
    if image is None:
        return []
    return [
        *([agents.init_container(image, resources)] if how is AgentDelivery.COPY else []),
        *([_fetcher(spec, image, resources)] if spec.code is not None else []),
    ]


def _fetcher(spec: JobSpec, image: str, resources: Object) -> Object:
    """Return the container that fetches the code.

    It has the job's secrets, because the source may be private, and the job's volumes.
    """
    packed = (
        [{"name": _PACKED, "mountPath": config_maps.PACKED, "readOnly": True}] if _is_packed(spec) else []
    )
    arguments = [config_maps.FETCH, config_maps.CODE, config_maps.EXIT]
    return labels.given(
        {
            "name": CODE_CONTAINER,
            "image": image,
            "command": ["python3", "-I", "-m", "paceline.agent.fetch", *arguments],
            "envFrom": _secrets(spec),
            "resources": resources,
            "securityContext": securities.strict(),
            # Kubernetes reports the termination message, or the end of the log if there is no message.
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [
                agents.home_mount(),
                {"name": _CONFIG, "mountPath": config_maps.FOLDER, "readOnly": True},
                *packed,
                *({**each, "readOnly": True} for each in _mounts(spec)),
            ],
        }
    )


def _container(spec: JobSpec, role: RoleSpec, how: AgentDelivery, arguments: Sequence[str]) -> Object:
    scratch = {"name": _SCRATCH, "mountPath": config_maps.SCRATCH}
    return labels.given(
        {
            "name": TRAINING,
            "image": spec.image,
            "command": [*agents.start(how, spec.command_of(role.role)), *arguments],
            "workingDir": spec.code.start(config_maps.CODE, spec.working_dir)
            if spec.code
            else spec.working_dir,
            "env": withheld(spec),
            "envFrom": _secrets(spec),
            "ports": [
                {"name": "training", "containerPort": services.PORT},
                {"name": METRICS, "containerPort": config_maps.METRICS_PORT},
            ],
            "resources": sizes.resources(role),
            "securityContext": securities.of_container(spec.security, is_read_only=_is_read_only(spec, how)),
            "volumeMounts": [
                *agents.mounts(how),
                *([scratch] if _has_scratch(spec, how) else []),
                {"name": _CONFIG, "mountPath": config_maps.FOLDER, "readOnly": True},
                *_mounts(spec),
            ],
        }
    )


def _secrets(spec: JobSpec) -> list[Object]:
    return [{"secretRef": {"name": name}} for name in spec.secrets]


def withheld(spec: JobSpec) -> list[Object]:
    """Return empty variables that hide the credentials for the code's source from the command.

    A Secret is passed to the container as a whole; an explicit variable overrides the Secret's variable.
    """
    is_fetched = spec.code is not None and not _is_packed(spec)
    names = code_sources.CREDENTIALS if is_fetched and spec.secrets else ()
    return [{"name": name, "value": ""} for name in names]


def _mounts(spec: JobSpec) -> list[Object]:
    return [
        {"name": each.name, "mountPath": each.mount_path, "readOnly": each.read_only} for each in spec.volumes
    ]


def _volumes(spec: JobSpec, where: Surroundings, how: AgentDelivery) -> list[Object]:
    token = [{"secret": {"name": agent_secrets.name(spec.name)}}] if where.has_agent_token else []
    own: list[Object] = [
        *agents.volumes(how, where),
        *([{"name": _SCRATCH, "emptyDir": {}}] if _has_scratch(spec, how) else []),
        {"name": _CONFIG, "projected": {"sources": [{"configMap": {"name": spec.name}}, *token]}},
    ]
    if spec.code is not None and _is_packed(spec):
        own.append({"name": _PACKED, "configMap": {"name": spec.code.config_map}})
    return own + [{"name": each.name, **_source(each)} for each in spec.volumes]


def _source(volume: job_specs.Volume) -> Object:
    if volume.claim is not None:
        return {"persistentVolumeClaim": {"claimName": volume.claim}}
    if volume.secret is not None:
        return {"secret": {"secretName": volume.secret}}
    return {"hostPath": {"path": volume.host_path}}


def _is_read_only(spec: JobSpec, how: AgentDelivery) -> bool:
    """Return whether a replica's root file system is read-only.

    The agent writes to its home, so the home has to be a volume.
    """
    return securities.is_restricted(spec.security) and how is not AgentDelivery.IMAGE


def _has_scratch(spec: JobSpec, how: AgentDelivery) -> bool:
    """Return whether a replica needs a volume for temporary files."""
    taken = {each.mount_path for each in spec.volumes}
    return _is_read_only(spec, how) and config_maps.SCRATCH not in taken


def _is_packed(spec: JobSpec) -> bool:
    """Return whether the job's code comes in a config map."""
    return spec.code is not None and spec.code.config_map is not None


def _toleration(each: Toleration) -> Object:
    return labels.given(
        {
            "key": each.key,
            "operator": each.operator,
            "value": each.value,
            "effect": each.effect,
            "tolerationSeconds": each.toleration_seconds,
        }
    )
