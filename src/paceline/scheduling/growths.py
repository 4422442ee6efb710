"""Places for more workers of a running job: for all of them, or for none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.nodes import Quota, Resources
from paceline.model.jobs.placements import PlacementStrategy
from paceline.model.roles import ReplicaId, Role
from paceline.scheduling import packings
from paceline.scheduling.items import alike, requests
from paceline.scheduling.node_groups import NodeGroups


def places(
    spec: JobSpec,
    new: Sequence[ReplicaId],
    nodes: NodeGroups,
    quotas: Sequence[Quota],
    ps_nodes: Mapping[ReplicaId, str],
) -> dict[ReplicaId, str] | None:
    """Return the node of each new worker; None: not all of them fit. The answer is exact within
    `packings.MOST_STEPS`.

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
    if spec.placement.strategy is PlacementStrategy.COLOCATE and ps is not None:
        servers = {replica: ReplicaId(Role.PS, replica.index % ps.replicas) for replica in new}
        free = {name: left for left, names in nodes.open_to(spec.placement) for name in names}
        return _beside(servers, takes, free, ps_nodes)
    closed = {*ps_nodes.values()} if spec.placement.strategy is PlacementStrategy.ISOLATE else set()
    # As many more as may be closed, so that enough are left.
    free = nodes.enough(spec.placement, len(new) + len(closed))
    items = alike(spec, role, new)
    packing = packings.pack(items, {name: left for name, left in free.items() if name not in closed})
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
