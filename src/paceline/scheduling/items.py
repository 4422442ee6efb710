"""The items of a job that need a place: replicas, or groups of replicas that belong together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from paceline.model.jobs import job_specs
from paceline.model.jobs.nodes import KINDS, Resources
from paceline.model.jobs.placements import PlacementStrategy
from paceline.model.roles import ReplicaId, Role

#: The most sizes of one role that are distinguished: each is one more kind, and packing takes longer with it.
MOST_SIZES = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """The items of one kind; each item goes on one node as a whole.

    Attributes:
        takes: the resources that one item takes.
        members: the replicas of each item.
        per_node: the most items on one node; None: any number.
        apart_from: the kinds that cannot be on the same node.
    """

    name: str
    takes: Resources
    members: tuple[tuple[ReplicaId, ...], ...]
    per_node: int | None = None
    apart_from: frozenset[str] = frozenset()

    @property
    def count(self) -> int:
        """The number of items."""
        return len(self.members)


def requests(role: job_specs.RoleSpec) -> Resources:
    """Return the resources that a replica of a role requests of a node."""
    return Resources(
        millicores=role.requested_millicores,
        memory_bytes=role.memory_bytes or 0,
        gpus=role.gpus,
        pods=1,
    )


def total(spec: job_specs.JobSpec) -> Resources:
    """Return the resources that all replicas of a job request together."""
    return total_of(spec, spec.replicas())


def total_of(spec: job_specs.JobSpec, replicas: Iterable[ReplicaId]) -> Resources:
    """Return the resources that some replicas of a job request together."""
    return sum((requests(spec.role_of(each)) for each in replicas), Resources())


def items(spec: job_specs.JobSpec) -> tuple[Item, ...]:
    """Return the items that need a place; the kind with the most items comes last."""
    strategy = spec.placement.strategy
    ps, worker = spec.role(Role.PS), spec.role(Role.WORKER)
    if strategy is PlacementStrategy.COLOCATE and ps is not None and worker is not None:
        found = _colocated(spec, ps, worker)
    else:
        found = [item for role in spec.roles for item in _of_role(spec, role, strategy)]
    return _ordered(found)


def _of_role(spec: job_specs.JobSpec, role: job_specs.RoleSpec, strategy: PlacementStrategy) -> list[Item]:
    """Return the replicas of a role as items by size: most have the size of the role, some may differ."""
    sized = _sized(spec, role, _replicas(role))
    if role.role is Role.PS and strategy is PlacementStrategy.SPREAD_PS:
        names = frozenset(item.name for item in sized)
        return [dataclasses.replace(item, per_node=1, apart_from=names - {item.name}) for item in sized]
    if strategy is PlacementStrategy.ISOLATE:
        others = [each for each in spec.roles if (each.role is Role.PS) is not (role.role is Role.PS)]
        apart = frozenset(item.name for other in others for item in _sized(spec, other, _replicas(other)))
        return [dataclasses.replace(item, apart_from=apart) for item in sized]
    return sized


def alike(
    spec: job_specs.JobSpec, role: job_specs.RoleSpec, replicas: Sequence[ReplicaId]
) -> tuple[Item, ...]:
    """Return some replicas of a role as items by size; the kind with the most items comes last."""
    return _ordered(_sized(spec, role, replicas))


def _ordered(kinds: Sequence[Item]) -> tuple[Item, ...]:
    """Return the kinds that have items; the kind with the most items comes last."""
    return tuple(sorted((item for item in kinds if item.count), key=lambda item: item.count))


def _replicas(role: job_specs.RoleSpec) -> list[ReplicaId]:
    return [ReplicaId(role.role, index) for index in range(role.replicas)]


def _sized(spec: job_specs.JobSpec, role: job_specs.RoleSpec, replicas: Sequence[ReplicaId]) -> list[Item]:
    """Return replicas of a role as items by size; first those of the role's own size, even if it is none."""
    return [
        Item(name=name, takes=takes, members=tuple((replica,) for replica in members))
        for name, takes, members in _by_size(spec, role, replicas)
    ]


def _by_size(
    spec: job_specs.JobSpec, role: job_specs.RoleSpec, replicas: Sequence[ReplicaId]
) -> list[tuple[str, Resources, Sequence[ReplicaId]]]:
    """Return the name, the resources and the members of each size; first the role's, even without members."""
    sizes: dict[Resources, list[ReplicaId]] = {requests(role): []}
    for replica in replicas:
        sizes.setdefault(requests(spec.role_of(replica)), []).append(replica)
    own, *others = sizes.items()
    if len(others) >= MOST_SIZES:
        # Too many sizes to distinguish: each of these replicas counts as the largest one.
        largest = Resources(**{kind: max(getattr(each, kind) for each, _ in others) for kind in KINDS})
        others = [(largest, [replica for _, replicas in others for replica in replicas])]
    return [
        (str(role.role), *own),
        *((_several(replicas), takes, replicas) for takes, replicas in others),
    ]


def _several(replicas: Sequence[ReplicaId]) -> str:
    first, *others = map(str, replicas)
    return f"{first} and {len(others)} more" if others else first


def _colocated(spec: job_specs.JobSpec, ps: job_specs.RoleSpec, worker: job_specs.RoleSpec) -> list[Item]:
    """Return items of one PS with its share of the workers; shares differ by one worker at most."""
    kinds: dict[tuple[int, Resources], list[tuple[ReplicaId, ...]]] = {}
    for index in range(ps.replicas):
        share = tuple(ReplicaId(Role.WORKER, i) for i in range(index, worker.replicas, ps.replicas))
        group = (ReplicaId(Role.PS, index), *share)
        takes = sum((requests(spec.role_of(each)) for each in group), Resources())
        kinds.setdefault((len(share), takes), []).append(group)
    usual = {share: requests(ps) + requests(worker) * share for share, _ in kinds}
    names = {
        (share, takes): f"ps with {share} workers" if takes == usual[share] else str(members[0][0])
        for (share, takes), members in kinds.items()
    }
    groups = [
        Item(
            name=names[kind],
            takes=kind[1],
            members=tuple(members),
            per_node=1,
            apart_from=frozenset(names.values()) - {names[kind]},
        )
        for kind, members in kinds.items()
    ]
    alone = [role for role in spec.roles if role.role not in (Role.PS, Role.WORKER)]
    return [*groups, *(item for role in alone for item in _of_role(spec, role, PlacementStrategy.ANY))]
