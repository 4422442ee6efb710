"""Places for more workers of a running job: for all of them, or for none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.nodes import Node, Quota, Resources
from paceline.model.jobs.placements import PlacementStrategy
from paceline.model.roles import ReplicaId, Role
from paceline.scheduling import eligibility, packings
from paceline.scheduling.items import alike, requests


def places(
    spec: JobSpec,
    new: Sequence[ReplicaId],
    nodes: Sequence[Node],
    quotas: Sequence[Quota],
    ps_nodes: Mapping[ReplicaId, str],
) -> dict[ReplicaId, str] | None:
    """Return the node of each new worker; None: not all of them fit. The answer is exact.

    Args:
        spec: the job.
        new: the new workers.
        nodes: the nodes as they are.
        quotas: the quotas of the job's namespace.
        ps_nodes: the nodes on which its parameter servers run.
    """
    role, ps = spec.role(Role.WORKER), spec.role(Role.PS)
    assert role is not None, "a job that gets more workers has some"
    takes = {replica: requests(spec.role_of(replica)) for replica in new}
    total = sum(takes.values(), Resources())
    if any(getattr(total, kind) > left for quota in quotas for kind, left in quota.left.items()):
        return None
    free = eligibility.free(nodes, spec.placement)
    if spec.placement.strategy is PlacementStrategy.COLOCATE and ps is not None:
        servers = {replica: ReplicaId(Role.PS, replica.index % ps.replicas) for replica in new}
        return _beside(servers, takes, free, ps_nodes)
    if spec.placement.strategy is PlacementStrategy.ISOLATE:
        free = {name: left for name, left in free.items() if name not in ps_nodes.values()}
    items = alike(spec, role, new)
    packing = packings.pack(items, free)
    return packing.places(items) if packing is not None and packing.is_whole(items) else None


def _beside(
    servers: Mapping[ReplicaId, ReplicaId],
    takes: Mapping[ReplicaId, Resources],
    free: Mapping[str, Resources],
    ps_nodes: Mapping[ReplicaId, str],
) -> dict[ReplicaId, str] | None:
    """Return the node of each worker: that of its parameter server; None: not all of them fit there."""
    left, nodes = dict(free), {}
    for replica, server in servers.items():
        node = ps_nodes.get(server)
        if node is None or node not in left or left[node].lacking(takes[replica]):
            return None
        nodes[replica] = node
        left[node] -= takes[replica]
    return nodes
