"""What of a job has to find a place: replicas, or groups of replicas that belong together."""

from __future__ import annotations

import dataclasses

from paceline.model import jobs
from paceline.model.nodes import Resources
from paceline.model.placements import PlacementStrategy
from paceline.model.roles import ReplicaId, Role


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Things of one kind, each of which goes on one node whole.

    Attributes:
        takes: what one of them takes.
        members: the replicas of each.
        per_node: so many at most on one node; None for any number.
        apart_from: kinds that cannot be on the same node.
    """

    name: str
    takes: Resources
    members: tuple[tuple[ReplicaId, ...], ...]
    per_node: int | None = None
    apart_from: frozenset[str] = frozenset()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.members)


def requests(role: jobs.RoleSpec) -> Resources:
    """Return what a replica of a role requests of a node."""
    return Resources(
        millicores=role.requested_millicores,
        memory_bytes=role.memory_bytes or 0,
        gpus=role.gpus,
        pods=1,
    )


def items(spec: jobs.JobSpec) -> tuple[Item, ...]:
    """Return what has to find a place; the kind of which there are most comes last."""
    strategy = spec.placement.strategy
    ps, worker = spec.role(Role.PS), spec.role(Role.WORKER)
    if strategy is PlacementStrategy.COLOCATE and ps is not None and worker is not None:
        found = _colocated(spec, ps, worker)
    else:
        found = [_item(role, strategy) for role in spec.roles]
    return tuple(sorted((each for each in found if each.count), key=lambda each: each.count))


def _item(role: jobs.RoleSpec, strategy: PlacementStrategy) -> Item:
    is_ps = role.role is Role.PS
    others = {str(each) for each in Role} - {str(Role.PS)}
    return Item(
        name=str(role.role),
        takes=requests(role),
        members=tuple((ReplicaId(role.role, index),) for index in range(role.replicas)),
        per_node=1 if is_ps and strategy is PlacementStrategy.SPREAD_PS else None,
        apart_from=frozenset(others if is_ps else {str(Role.PS)})
        if strategy is PlacementStrategy.ISOLATE
        else frozenset(),
    )


def _colocated(spec: jobs.JobSpec, ps: jobs.RoleSpec, worker: jobs.RoleSpec) -> list[Item]:
    """One PS with its share of the workers on each node; shares differ by one worker at most."""
    kinds: dict[int, list[tuple[ReplicaId, ...]]] = {}
    for index in range(ps.replicas):
        share = tuple(ReplicaId(Role.WORKER, i) for i in range(index, worker.replicas, ps.replicas))
        kinds.setdefault(len(share), []).append((ReplicaId(Role.PS, index), *share))
    names = {share: f"ps with {share} workers" for share in kinds}
    groups = [
        Item(
            name=names[share],
            takes=requests(ps) + requests(worker) * share,
            members=tuple(members),
            per_node=1,
            apart_from=frozenset(names.values()) - {names[share]},
        )
        for share, members in kinds.items()
    ]
    alone = [role for role in spec.roles if role.role not in (Role.PS, Role.WORKER)]
    return [*groups, *(_item(role, PlacementStrategy.ANY) for role in alone)]
