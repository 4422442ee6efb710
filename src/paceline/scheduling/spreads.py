"""Even packing: fast and usually sufficient; `packings` may find a packing where this does not.

Replicas that share a node share its network, and a kubelet starts its pods one after the other. So the items
of a kind go on as many nodes as possible: each on a node with the fewest of its kind, and among these on the
one with the most room (as ``NodeResourcesLeastAllocated`` of Kubernetes' scheduler does for single pods).
Kinds take turns in proportion to their numbers, so kinds that cannot be together divide the nodes between
them.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from paceline.model.jobs.nodes import Resources
from paceline.scheduling.items import Item
from paceline.scheduling.packings import Packing

_Rank = tuple[int, int, str]  # the items of the kind on the node, minus the room for more, the node


def spread(items: Sequence[Item], free: Mapping[str, Resources]) -> Packing | None:
    """Place all items evenly; None: no such packing was found.

    Args:
        items: the kinds.
        free: the free resources of each node, by name.
    """
    left = dict(free)
    there = {name: Counter[str]() for name in free}
    ranks: dict[str, list[_Rank]] = {}
    for item in items:
        ranks[item.name] = [_rank(item, name, left, there) for name in free]
        heapq.heapify(ranks[item.name])
    for item in _in_turn(items):
        node = _next(item, ranks[item.name], left, there)
        if node is None:
            return None
        left[node] = left[node] - item.takes
        there[node][item.name] += 1
    return Packing(placed={name: kinds for name, kinds in there.items() if kinds})


def _in_turn(items: Sequence[Item]) -> Iterator[Item]:
    """Yield each kind as often as it has items, with all kinds evenly mixed."""
    turns = [
        ((number + 0.5) / item.count, kind) for kind, item in enumerate(items) for number in range(item.count)
    ]
    for _, kind in sorted(turns):
        yield items[kind]


def _next(
    item: Item, ranks: list[_Rank], left: Mapping[str, Resources], there: Mapping[str, Counter[str]]
) -> str | None:
    """Return the best node for one more item of a kind; None: there is none.

    Ranks only get worse, so the first rank that is still current is the best.
    """
    while ranks:
        node = ranks[0][2]
        if not _is_open(item, left[node], there[node]):
            heapq.heappop(ranks)
        elif (rank := _rank(item, node, left, there)) != ranks[0]:
            heapq.heapreplace(ranks, rank)
        else:
            return node
    return None


def _rank(item: Item, node: str, left: Mapping[str, Resources], there: Mapping[str, Counter[str]]) -> _Rank:
    return there[node][item.name], -left[node].times(item.takes), node


def _is_open(item: Item, left: Resources, there: Counter[str]) -> bool:
    """Whether a node takes one more item; a node that does not never will again."""
    if item.per_node is not None and there[item.name] >= item.per_node:
        return False
    return not item.apart_from & there.keys() and not left.lacking(item.takes)
