"""A replica as a pod.

It never restarts by itself: each attempt is a pod of its own, so that what an earlier one left can be seen.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.model import quantities
from paceline.model.jobs import code_sources, job_specs
from paceline.model.jobs.adjustments import Allowance
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.placements import Toleration
from paceline.model.roles import ReplicaId
from paceline.rendering import affinities, agent_secrets, config_maps, labels, securities, services
from paceline.rendering.labels import Object
from paceline.rendering.surroundings import Surroundings

GPU = "nvidia.com/gpu"
#: The interpreter that is brought, on the loader and libraries that are brought with it.
AGENT = (
    f"{config_maps.HOME}/lib/ld.so", "--library-path", f"{config_maps.HOME}/lib",
    f"{config_maps.HOME}/bin/python3", "-I", "-S", f"{config_maps.HOME}/agent.py",
)  # fmt: skip
#: The containers: the first two bring agent and code, and end; the other is the replica.
AGENT_CONTAINER, CODE_CONTAINER, TRAINING = "agent", "code", "training"
OWN_VOLUMES = _OWN, _CONFIG, _PACKED, _SCRATCH = (
    "paceline", "paceline-config", "paceline-code", "paceline-tmp",
)  # fmt: skip
#: The port's name, and where a Prometheus that finds pods by their annotations looks.
METRICS = "metrics"
SCRAPED = {
    "prometheus.io/scrape": "true",
    "prometheus.io/port": str(config_maps.METRICS_PORT),
    "prometheus.io/path": "/metrics",
}
#: What the agent needs for its own last act after it has killed the command.
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
        replica: which replica.
        where: where it is to live.
        attempt: which launch of it, from 1.
        memory_bytes: instead of the memory that its role asks for.
        node: where it has to run; None: where the scheduler puts it.
    """
    role = spec.role_of(replica)
    host = labels.host_name(spec, replica)
    own = {
        labels.ROLE: str(replica.role),
        labels.INDEX: str(replica.index),
        labels.ATTEMPT: str(attempt),
    }
    group = affinities.group(spec, replica)
    if group is not None:
        own[labels.GROUP] = str(group)
    body = pod_spec(
        spec,
        where,
        dataclasses.replace(role, memory_bytes=memory_bytes or role.memory_bytes),
        arguments=config_maps.arguments(
            replica.role, replica.index, attempt, has_token=where.has_agent_token
        ),
        affinity=affinities.affinity(spec, replica, node),
    )
    metadata = labels.metadata(spec, labels.pod_name(spec.name, replica, attempt), where, own)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "annotations": {**SCRAPED}},
        "spec": {"hostname": host, "subdomain": spec.name, "restartPolicy": "Never", **body},
    }


def template(
    spec: JobSpec, where: Surroundings, role: RoleSpec, index_variable: str, container: Object | None = None
) -> Object:
    """Return the template of all pods of a role, for an operator that makes them.

    Args:
        spec: the job.
        where: where they are to live.
        role: its role.
        index_variable: the variable of the container that has the replica's index.
        container: fields of the container over those that it has here.
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
    """Return what all pods of a role have in common, whichever program makes them.

    Args:
        spec: the job.
        where: where they are to live.
        role: its role.
        arguments: what the agent is started with.
        affinity: where they may go.
        container: fields of the container over those that it has here.
    """
    resources = _resources(role)
    return labels.given(
        {
            "terminationGracePeriodSeconds": math.ceil(spec.termination_grace_seconds) + SLACK_SECONDS,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": securities.of_pod(spec.security),
            "initContainers": _init_containers(spec, where, resources),
            "containers": [{**_container(spec, where, resources, arguments), **(container or {})}],
            "volumes": _volumes(spec, where),
            "nodeSelector": dict(spec.placement.node_selector),
            "tolerations": [_toleration(each) for each in spec.placement.tolerations],
            "affinity": affinity,
        }
    )


def _init_containers(spec: JobSpec, where: Surroundings, resources: Object) -> list[Object]:
    if where.agent_image is None:
        return []
    bringer = _bringer(where.agent_image, resources)
    return [bringer] if spec.code is None else [bringer, _fetcher(spec, where.agent_image, resources)]


def _fetcher(spec: JobSpec, image: str, resources: Object) -> Object:
    """Fetch the code; with the job's secrets, since its source may be private, and with its volumes."""
    is_packed = spec.code is not None and spec.code.config_map is not None
    packed = [{"name": _PACKED, "mountPath": config_maps.PACKED, "readOnly": True}] if is_packed else []
    arguments = [config_maps.FETCH, config_maps.CODE, config_maps.EXIT]
    return labels.given(
        {
            "name": CODE_CONTAINER,
            "image": image,
            "command": ["python3", "-I", "-m", "paceline.agent.fetch", *arguments],
            "envFrom": _secrets(spec),
            "resources": resources,
            "securityContext": securities.strict(),
            # Its last word is told when it has one, and the end of its log when it died of something else.
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [
                {"name": _OWN, "mountPath": config_maps.HOME},
                {"name": _CONFIG, "mountPath": config_maps.FOLDER, "readOnly": True},
                *packed,
                *({**each, "readOnly": True} for each in _mounts(spec)),
            ],
        }
    )


def _secrets(spec: JobSpec) -> list[Object]:
    return [{"secretRef": {"name": name}} for name in spec.secrets]


def withheld(spec: JobSpec) -> list[Object]:
    """Return what the command is not to have of the secrets: the right to the source of its code.

    A variable wins over those of a secret, which come all or not at all.
    """
    is_fetched = spec.code is not None and spec.code.config_map is None
    names = code_sources.CREDENTIALS if is_fetched and spec.secrets else ()
    return [{"name": name, "value": ""} for name in names]


def _mounts(spec: JobSpec) -> list[Object]:
    return [
        {"name": each.name, "mountPath": each.mount_path, "readOnly": each.read_only} for each in spec.volumes
    ]


def _bringer(image: str, resources: Object) -> Object:
    """Bring the agent; with the resources of the container itself, lest the pod lose its class."""
    return {
        "name": AGENT_CONTAINER,
        "image": image,
        "command": ["python3", "-I", "-m", "paceline.agent.bring", config_maps.HOME],
        "resources": resources,
        "securityContext": securities.strict(),
        "volumeMounts": [{"name": _OWN, "mountPath": config_maps.HOME}],
    }


def _container(spec: JobSpec, where: Surroundings, resources: Object, arguments: Sequence[str]) -> Object:
    own: list[Object] = [
        *([{"name": _OWN, "mountPath": config_maps.HOME}] if where.agent_image else []),
        *([{"name": _SCRATCH, "mountPath": config_maps.SCRATCH}] if _has_scratch(spec, where) else []),
    ]
    return labels.given(
        {
            "name": TRAINING,
            "image": spec.image,
            "command": [*AGENT, *arguments],
            "workingDir": spec.code.start(config_maps.CODE, spec.working_dir)
            if spec.code
            else spec.working_dir,
            "env": withheld(spec),
            "envFrom": _secrets(spec),
            "ports": [
                {"name": "training", "containerPort": services.PORT},
                {"name": METRICS, "containerPort": config_maps.METRICS_PORT},
            ],
            "resources": resources,
            "securityContext": securities.of_container(
                spec.security, is_read_only=_is_read_only(spec, where)
            ),
            "volumeMounts": [
                *own,
                {"name": _CONFIG, "mountPath": config_maps.FOLDER, "readOnly": True},
                *_mounts(spec),
            ],
        }
    )


def _is_read_only(spec: JobSpec, where: Surroundings) -> bool:
    """Whether a replica's root is read only: the agent writes to its home, so that has to be a volume."""
    return securities.is_restricted(spec.security) and where.agent_image is not None


def _has_scratch(spec: JobSpec, where: Surroundings) -> bool:
    """Whether a replica needs a volume of its own for what programs write anywhere."""
    taken = {each.mount_path for each in spec.volumes}
    return _is_read_only(spec, where) and config_maps.SCRATCH not in taken


def _resources(role: RoleSpec) -> Object:
    """Return requests and limits of a replica; equal ones in whole cores make these its own."""
    limits, requests = {}, {}
    if role.cpu_cores is not None:
        limits["cpu"] = quantities.quantity_cores(role.cpu_cores)
        requests["cpu"] = quantities.quantity_cores(role.requested_millicores / 1000)
    if role.memory_bytes is not None:
        limits["memory"] = requests["memory"] = quantities.quantity_bytes(role.memory_bytes)
    if role.gpus:
        limits[GPU] = requests[GPU] = str(role.gpus)
    return labels.given({"requests": requests, "limits": limits})


def sized(role: RoleSpec, allowance: Allowance) -> RoleSpec:
    """Return the spec of a role with what one replica of it may take; whole cores of its own stay."""
    return dataclasses.replace(
        role,
        cpu_cores=role.cpu_cores if allowance.cpu_cores is None else allowance.cpu_cores,
        memory_bytes=allowance.memory_bytes,
    )


def adjustable(role: RoleSpec) -> Object:
    """Return of the requests and limits of a replica what can be changed while it runs."""
    return {
        bound: {name: amount for name, amount in amounts.items() if name in ("cpu", "memory")}
        for bound, amounts in _resources(role).items()
    }


def is_sized(pod: Mapping[str, Any], wanted: Object) -> bool:
    """Whether a replica's pod was asked for with these requests and limits; it may have others besides."""
    return _holds(_training((pod.get("spec") or {}).get("containers")), wanted)


def has_size(pod: Mapping[str, Any], wanted: Object) -> bool:
    """Whether a replica's pod really has these requests and limits by now.

    Source: Kubernetes' documentation, "Resize CPU and Memory Resources assigned to Containers": a kubelet
    says in the status what a container has. One that says nothing of it is taken at the word of the spec.
    """
    told = _training((pod.get("status") or {}).get("containerStatuses"))
    return is_sized(pod, wanted) and (not told or _holds(told, wanted))


def _training(containers: Sequence[Mapping[str, Any]] | None) -> Mapping[str, Any]:
    """Return the resources of the container that trains."""
    found = (each.get("resources") or {} for each in containers or () if each.get("name") == TRAINING)
    return next(found, {})


def _holds(has: Mapping[str, Any], wanted: Object) -> bool:
    return all(
        name in (has.get(bound) or {})
        and quantities.parse_quantity(has[bound][name]) == quantities.parse_quantity(amount)
        for bound, amounts in wanted.items()
        for name, amount in amounts.items()
    )


def _volumes(spec: JobSpec, where: Surroundings) -> list[Object]:
    token = [{"secret": {"name": agent_secrets.name(spec.name)}}] if where.has_agent_token else []
    own: list[Object] = [
        *([{"name": _OWN, "emptyDir": {}}] if where.agent_image else []),
        *([{"name": _SCRATCH, "emptyDir": {}}] if _has_scratch(spec, where) else []),
        {"name": _CONFIG, "projected": {"sources": [{"configMap": {"name": spec.name}}, *token]}},
    ]
    if spec.code is not None and spec.code.config_map is not None:
        own.append({"name": _PACKED, "configMap": {"name": spec.code.config_map}})
    return own + [{"name": each.name, **_source(each)} for each in spec.volumes]


def _source(volume: job_specs.Volume) -> Object:
    if volume.claim is not None:
        return {"persistentVolumeClaim": {"claimName": volume.claim}}
    if volume.secret is not None:
        return {"secret": {"secretName": volume.secret}}
    return {"hostPath": {"path": volume.host_path}}


def _toleration(each: Toleration) -> Object:
    return {
        name: value
        for name, value in (
            ("key", each.key),
            ("operator", each.operator),
            ("value", each.value),
            ("effect", each.effect),
            ("tolerationSeconds", each.toleration_seconds),
        )
        if value is not None
    }
