"""Places for more workers of a running job: for all of them, or for none.

New workers are alike, and a node is either open to a worker or not, so taking any node with room is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.nodes import Node, Quota
from paceline.model.jobs.placements import PlacementStrategy
from paceline.model.roles import ReplicaId, Role
from paceline.scheduling import eligibility
from paceline.scheduling.items import requests


def places(
    spec: JobSpec,
    new: Sequence[ReplicaId],
    nodes: Sequence[Node],
    quotas: Sequence[Quota],
    ps_nodes: Mapping[ReplicaId, str],
) -> dict[ReplicaId, str] | None:
    """Return the node of each new worker; None: not all of them fit.

    Args:
        spec: the job.
        new: the new workers.
        nodes: the nodes as they are.
        quotas: the quotas of the job's namespace.
        ps_nodes: the nodes on which its parameter servers run.
    """
    role = spec.role(Role.WORKER)
    assert role is not None, "who gets more workers has some"
    takes = requests(role)
    for quota in quotas:
        for kind, left in quota.left.items():
            if getattr(takes, kind) * len(new) > left:
                return None
    free = {node.name: node.free for node in nodes if eligibility.obstacle(node, spec.placement) is None}
    found = {}
    for replica in new:
        open_to = _open(spec, replica, free, ps_nodes)
        node = next((name for name in open_to if not free[name].lacking(takes)), None)
        if node is None:
            return None
        found[replica] = node
        free[node] -= takes
    return found


def _open(
    spec: JobSpec, replica: ReplicaId, free: Mapping[str, object], ps_nodes: Mapping[ReplicaId, str]
) -> list[str]:
    """Return the nodes that the placement strategy opens to a new worker, given the running servers."""
    ps = spec.role(Role.PS)
    match spec.placement.strategy:
        case PlacementStrategy.COLOCATE if ps is not None:
            own = ps_nodes.get(ReplicaId(Role.PS, replica.index % ps.replicas))
            return [own] if own is not None and own in free else []
        case PlacementStrategy.ISOLATE:
            taken = set(ps_nodes.values())
            return [name for name in free if name not in taken]
    return list(free)
