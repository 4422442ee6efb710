"""The sizes of replicas: the requests and limits of their containers, and whether a pod has them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.model import quantities
from paceline.model.jobs.adjustments import Allowance
from paceline.model.jobs.job_specs import RoleSpec
from paceline.rendering import labels
from paceline.rendering.labels import Object

GPU = "nvidia.com/gpu"
#: The container that is the replica, so its size is the replica's.
TRAINING = "training"


def resources(role: RoleSpec) -> Object:
    """Return the requests and limits of a replica; equal ones in whole cores can give it exclusive cores."""
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
    """Return the spec of a role with a replica's allowance; cores stay if the allowance names none."""
    return dataclasses.replace(
        role,
        cpu_cores=role.cpu_cores if allowance.cpu_cores is None else allowance.cpu_cores,
        memory_bytes=allowance.memory_bytes,
    )


def adjustable(role: RoleSpec) -> Object:
    """Return the requests and limits of a replica that can be changed while it runs: CPU and memory."""
    return {
        bound: {name: amount for name, amount in amounts.items() if name in ("cpu", "memory")}
        for bound, amounts in resources(role).items()
    }


def is_sized(pod: Mapping[str, Any], wanted: Object) -> bool:
    """Return whether the spec of a replica's pod has these requests and limits; it may also have others."""
    return _holds(_training_resources((pod.get("spec") or {}).get("containers")), wanted)


def has_size(pod: Mapping[str, Any], wanted: Object) -> bool:
    """Return whether these requests and limits are in effect for a replica's pod.

    A kubelet reports in the status what a container has. If it reports nothing, the pod's spec is believed.
    Source: Kubernetes' documentation, "Resize CPU and Memory Resources assigned to Containers".
    """
    told = _training_resources((pod.get("status") or {}).get("containerStatuses"))
    return is_sized(pod, wanted) and (not told or _holds(told, wanted))


def _training_resources(containers: Sequence[Mapping[str, Any]] | None) -> Mapping[str, Any]:
    """Return the resources of the training container."""
    found = (each.get("resources") or {} for each in containers or () if each.get("name") == TRAINING)
    return next(found, {})


def _holds(has: Mapping[str, Any], wanted: Object) -> bool:
    return all(
        name in (has.get(bound) or {})
        and quantities.parse_quantity(has[bound][name]) == quantities.parse_quantity(amount)
        for bound, amounts in wanted.items()
        for name, amount in amounts.items()
    )
