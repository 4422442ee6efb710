"""The placement of a job as Kubernetes affinities of its pods.

Every term selects pods of the same job. As anti-affinity of a PS, ``In [ps]`` keeps it away from other PS,
and the similar ``NotIn [ps]`` keeps it away from all other roles.
"""

from __future__ import annotations

from collections.abc import Mapping

from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.placements import PlacementStrategy
from paceline.model.roles import ReplicaId, Role
from paceline.rendering import labels
from paceline.rendering.labels import Object

_HOST, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def group(spec: JobSpec, replica: ReplicaId) -> int | None:
    """Return the index of the PS with which a replica shares a node (a PS: its own index), or None."""
    ps = spec.role(Role.PS)
    if spec.placement.strategy is not PlacementStrategy.COLOCATE or ps is None:
        return None
    return replica.index % ps.replicas if replica.role in (Role.PS, Role.WORKER) else None


def affinity(spec: JobSpec, replica: ReplicaId, node: str | None) -> Object:
    """Return the affinity of a replica's pod; ``node``, if given, is the only node it may run on."""
    beside = group(spec, replica)
    near = {} if beside is None or replica.role is Role.PS else {labels.GROUP: str(beside)}
    return labels.given(
        {"nodeAffinity": {_REQUIRED: _only(node)} if node else {}, **_pods(spec, replica.role, near)}
    )


def of_role(spec: JobSpec, role: Role) -> Object:
    """Return the affinity of all pods of a role that are made from one template.

    With COLOCATE, a worker then shares a node with any PS instead of a particular PS, so the numbers of
    workers beside each PS may differ by more than one.
    """
    return labels.given(_pods(spec, role, {}))


def _pods(spec: JobSpec, role: Role, near_ps: Mapping[str, str]) -> Object:
    is_ps = role is Role.PS
    of_ps = _term(spec, "In")
    near: list[Object] = []
    apart: list[Object] = []
    preferred: list[Object] = []
    match spec.placement.strategy:
        case PlacementStrategy.SPREAD_PS if is_ps:
            apart.append(of_ps)
            preferred.append({"weight": 100, "podAffinityTerm": _term(spec, "In", topology=_ZONE)})
        case PlacementStrategy.COLOCATE if is_ps:
            apart.append(of_ps)
        case PlacementStrategy.COLOCATE if role is Role.WORKER and spec.role(Role.PS):
            near.append(_term(spec, "In", near_ps))
        case PlacementStrategy.ISOLATE:
            apart.append(_term(spec, "NotIn" if is_ps else "In"))
    return {
        "podAffinity": {_REQUIRED: near} if near else {},
        "podAntiAffinity": labels.given({_REQUIRED: apart, _PREFERRED: preferred}),
    }


def _term(
    spec: JobSpec, operator: str, own: Mapping[str, str] | None = None, topology: str = _HOST
) -> Object:
    """Return a term about the PS (``In``) or all other replicas (``NotIn``) of the same job."""
    is_ps = {"key": labels.ROLE, "operator": operator, "values": ["ps"]}
    selector = {"matchLabels": {labels.JOB: spec.name, **(own or {})}, "matchExpressions": [is_ps]}
    return {"labelSelector": selector, "topologyKey": topology}


def _only(node: str) -> Object:
    """Return the term that selects one node by name, because other programs may change node labels."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}
