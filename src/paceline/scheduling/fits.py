"""Whether a whole job fits on the nodes at once, where, how many workers fit, and what blocks the rest."""

from __future__ import annotations

import bisect
import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from paceline.model import quantities
from paceline.model.jobs import job_specs
from paceline.model.jobs.nodes import KINDS, Quota, Resources
from paceline.model.roles import ReplicaId, Role
from paceline.scheduling import packings, spreads
from paceline.scheduling.items import Item, items, requests
from paceline.scheduling.node_groups import NodeGroup, NodeGroups

_WORDS = {"millicores": "CPU", "memory_bytes": "memory", "gpus": "GPUs", "pods": "pods"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """A reason why replicas have no place, and the nodes that it concerns.

    Attributes:
        reason: the reason, for users.
        nodes: the nodes concerned; empty: the reason concerns no node.
        what: the kind of replicas without a place; empty: the whole job.
        missing: the number of these without a place.
    """

    reason: str
    nodes: tuple[str, ...] = ()
    what: str = ""
    missing: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Whether a job fits, and where or why not.

    Attributes:
        fits: whether all replicas have a place.
        places: the node of each replica; empty: not all fit.
        most_workers: the most workers that fit beside all other replicas; None: the others alone do not fit,
            the job has no workers, or to know it takes too long.
        blockers: why not all fit; empty: they do.
    """

    fits: bool
    places: Mapping[ReplicaId, str]
    most_workers: int | None
    blockers: tuple[Blocker, ...] = ()


def fit(spec: job_specs.JobSpec, nodes: NodeGroups, quotas: Sequence[Quota] = ()) -> Fit:
    """Return whether a job fits on nodes as they are; the answer is exact within `packings.MOST_STEPS`."""
    wanted = items(spec)
    free = nodes.enough(spec.placement, _count(wanted))
    over, packing = tuple(_over_quota(wanted, quotas)), _packed(wanted, free)
    if not over and packing is not None and packing.is_whole(wanted):
        return Fit(fits=True, places=packing.places(wanted), most_workers=_workers(spec))
    missing = tuple(_short(wanted, nodes.open_to(spec.placement), free, packing))
    shut = tuple(_shut_out(nodes.closed_to(spec.placement)))
    # Nodes are often closed to a job on purpose: if any node is open, missing resources are named first.
    blockers = (*over, *(missing + shut if free else shut + missing))
    most = _most_workers(spec, wanted, free, quotas, packing)
    return Fit(fits=False, places={}, most_workers=most, blockers=blockers)


def places(
    spec: job_specs.JobSpec, nodes: NodeGroups, quotas: Sequence[Quota] = ()
) -> dict[ReplicaId, str] | None:
    """Return the node of each replica; None: not all fit. Faster than `fit`, which looks for reasons."""
    wanted = items(spec)
    if any(_over_quota(wanted, quotas)):
        return None
    packing = _packed(wanted, nodes.enough(spec.placement, _count(wanted)))
    return packing.places(wanted) if packing is not None and packing.is_whole(wanted) else None


def is_over_quota(spec: job_specs.JobSpec, quotas: Sequence[Quota]) -> bool:
    """Whether a job requests more than quotas have left."""
    return any(_over_quota(items(spec), quotas))


def _packed(wanted: Sequence[Item], free: Mapping[str, Resources]) -> packings.Packing | None:
    """Return an even packing of all items, or else the packing with the most items of the last kind."""
    return spreads.spread(wanted, free) or packings.pack(wanted, free)


def _count(wanted: Sequence[Item]) -> int:
    return sum(item.count for item in wanted)


def _workers(spec: job_specs.JobSpec) -> int | None:
    role = spec.role(Role.WORKER)
    return role.replicas if role else None


def _most_workers(
    spec: job_specs.JobSpec,
    wanted: Sequence[Item],
    free: Mapping[str, Resources],
    quotas: Sequence[Quota],
    packing: packings.Packing | None,
) -> int | None:
    """Return the most workers that fit, by binary search: if a number fits, fewer do, too."""
    high = _workers(spec)
    if high is None:
        return None
    # A packing has as many items of the last kind as there is room for, so only quotas remain to be checked.
    is_packed = wanted[-1].name == Role.WORKER
    if is_packed:
        if packing is None:
            return None
        high = packing.count(Role.WORKER) + sum(_has_other_workers(each) * each.count for each in wanted)
    useful = {} if is_packed else _useful(spec, free)

    def fits(count: int) -> bool:
        some = items(spec.with_workers(count))
        if any(_over_quota(some, quotas)):
            return False
        if is_packed:
            return True
        found = _packed(some, useful)
        return found is not None and found.is_whole(some)

    if not fits(0):
        return None
    return bisect.bisect_left(range(1, high + 1), True, key=lambda count: not fits(count))


def _has_other_workers(item: Item) -> bool:
    """Whether an item consists of workers whose size differs from that of their role."""
    return item.name != Role.WORKER and item.members[0][0].role is Role.WORKER


def _useful(spec: job_specs.JobSpec, free: Mapping[str, Resources]) -> Mapping[str, Resources]:
    """Return the nodes that have room for at least one replica."""
    others = (requests(spec.role_of(each)) for each in spec.overrides if spec.has(each))
    sizes = {*map(requests, spec.roles), *others}
    return {name: left for name, left in free.items() if not all(map(left.lacking, sizes))}


def _over_quota(wanted: Sequence[Item], quotas: Sequence[Quota]) -> Iterator[Blocker]:
    total = sum((item.takes * item.count for item in wanted), Resources())
    for quota in quotas:
        for kind in KINDS:
            need, left = getattr(total, kind), quota.left.get(kind)
            if left is not None and need > left:
                words = f"{_amount(kind, need)} are asked for and {_amount(kind, max(0, left))} are left"
                yield Blocker(reason=f"quota {quota.name}: {words}")


def _shut_out(closed: Mapping[str, Sequence[str]]) -> Iterator[Blocker]:
    for reason, names in sorted(closed.items()):
        yield Blocker(reason=reason, nodes=tuple(sorted(names)))


def _short(
    requested_items: Sequence[Item],
    groups: Sequence[NodeGroup],
    free: Mapping[str, Resources],
    packing: packings.Packing | None,
) -> Iterator[Blocker]:
    """Yield why no node takes one more item of a kind that does not have places for all its items.

    This kind is the last one if all the others have places, else one that would not even fit alone, else the
    largest of the others.
    """
    if packing is not None:
        short = [item for item in requested_items if packing.count(item.name) < item.count]
        yield from _full(short[0], requested_items, groups, packing) if short else ()
        return
    for item in requested_items[:-1]:
        alone = packings.pack([item], free)
        assert alone is not None, "there is no other kind"
        if not alone.is_whole([item]):
            yield from _full(item, requested_items, groups, alone)
            return
    largest = max(requested_items[:-1], key=lambda item: (item.takes.millicores, item.takes.memory_bytes))
    beside = packings.pack([*(item for item in requested_items[:-1] if item is not largest), largest], free)
    if beside is None:
        yield Blocker(reason="each kind of replica has a place alone, but not all of them together")
    else:
        yield from _full(largest, requested_items, groups, beside)


def _full(
    item: Item, wanted: Sequence[Item], groups: Sequence[NodeGroup], packing: packings.Packing
) -> Iterator[Blocker]:
    takes = {each.name: each.takes for each in wanted}
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for free, names in groups:
        used = [name for name in names if name in packing.placed]
        for name in used:
            there = packing.placed[name]
            rest = free - sum((takes[other] * count for other, count in there.items()), Resources())
            reasons[_reason(item, there, rest)].append(name)
        if len(used) < len(names):
            reasons[_reason(item, {}, free)].extend(name for name in names if name not in packing.placed)
    missing = item.count - packing.count(item.name)
    if not groups:
        yield Blocker(reason="no node is open to the job", what=item.name, missing=missing)
    for reason, concerned in sorted(reasons.items(), key=lambda row: (-len(row[1]), row[0])):
        yield Blocker(reason=reason, nodes=tuple(sorted(concerned)), what=item.name, missing=missing)


def _reason(item: Item, there: Mapping[str, int], rest: Resources) -> str:
    """Return why a node takes no more of a kind, given what is placed there and what is left."""
    if item.per_node is not None and there.get(item.name, 0) >= item.per_node:
        return f"the placement wants no more than {item.per_node} on a node"
    others = item.apart_from & set(there)
    if others:
        return f"the placement wants it apart from {', '.join(sorted(others))}"
    lacking = rest.lacking(item.takes)
    short = (f"{_WORDS[kind]} for {_amount(kind, getattr(item.takes, kind))}" for kind in lacking)
    return f"too little {', '.join(short)}"


def _amount(kind: str, amount: int) -> str:
    match kind:
        case "millicores":
            return f"{amount / 1000:.3g} cores"
        case "memory_bytes":
            return quantities.format_bytes(amount)
    return f"{amount} {_WORDS[kind]}"
