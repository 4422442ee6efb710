"""What of a job has to find a place: replicas, or groups of replicas that belong together."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from paceline.model.jobs import job_specs
from paceline.model.jobs.nodes import KINDS, Resources
from paceline.model.jobs.placements import PlacementStrategy
from paceline.model.roles import ReplicaId, Role

#: So many sizes of one role are told apart: each is one more kind, and packing takes longer with each.
MOST_SIZES = 3


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


def requests(role: job_specs.RoleSpec) -> Resources:
    """Return what a replica of a role requests of a node."""
    return Resources(
        millicores=role.requested_millicores,
        memory_bytes=role.memory_bytes or 0,
        gpus=role.gpus,
        pods=1,
    )


def total(spec: job_specs.JobSpec) -> Resources:
    """Return what all replicas of a job request together."""
    return sum((requests(spec.role_of(each)) for each in spec.replicas()), Resources())


def items(spec: job_specs.JobSpec) -> tuple[Item, ...]:
    """Return what has to find a place; the kind of which there are most comes last."""
    strategy = spec.placement.strategy
    ps, worker = spec.role(Role.PS), spec.role(Role.WORKER)
    if strategy is PlacementStrategy.COLOCATE and ps is not None and worker is not None:
        found = _colocated(spec, ps, worker)
    else:
        found = [item for role in spec.roles for item in _of_role(spec, role, strategy)]
    return tuple(sorted((each for each in found if each.count), key=lambda each: each.count))


def _of_role(spec: job_specs.JobSpec, role: job_specs.RoleSpec, strategy: PlacementStrategy) -> list[Item]:
    """Return the replicas of a role by their size: most are as the role says, some may be others."""
    sizes = _sizes(spec, role)
    others = [each for each in spec.roles if (each.role is Role.PS) is not (role.role is Role.PS)]
    apart = {name for other in others for name, _, _ in _sizes(spec, other)}
    is_spread = role.role is Role.PS and strategy is PlacementStrategy.SPREAD_PS
    return [
        Item(
            name=name,
            takes=takes,
            members=tuple((each,) for each in replicas),
            per_node=1 if is_spread else None,
            apart_from=frozenset(
                {other for other, _, _ in sizes if other != name}
                if is_spread
                else apart
                if strategy is PlacementStrategy.ISOLATE
                else ()
            ),
        )
        for name, takes, replicas in sizes
    ]


def _sizes(
    spec: job_specs.JobSpec, role: job_specs.RoleSpec
) -> list[tuple[str, Resources, Sequence[ReplicaId]]]:
    """Return the name, the size and the replicas of each size that a role has."""
    found: dict[Resources, list[ReplicaId]] = {requests(role): []}
    for index in range(role.replicas):
        replica = ReplicaId(role.role, index)
        found.setdefault(requests(spec.role_of(replica)), []).append(replica)
    own, *others = found.items()
    if len(others) >= MOST_SIZES:
        # Too many to tell apart: each counts as large as the largest.
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
    """One PS with its share of the workers on each node; shares differ by one worker at most."""
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
