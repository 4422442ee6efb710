"""Exact packing of items of few kinds on many nodes.

A job has three or four kinds of items, so a few small numbers describe what is placed so far. A state is the
number of placed items of all kinds but the last. For each state, as many items of the last kind as possible
are placed. Later nodes need to know no more, because fewer items of the last kind fit wherever more do. Node
by node this is a knapsack in (max, +) arithmetic (Bellman 1957):

    best'[s] = max over k of best[s - k] + most[k]

where ``most[k]`` is how many items of the last kind fit on the node beside ``k`` items of the others. It is
exact, and takes nodes x states x (ways to use a node) steps; equal nodes count only as often as there are
items to place. Several kinds of very many items would take for ever, so there are `MOST_STEPS`; beyond them
no packing is found.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import math
from collections.abc import Collection, Mapping, Sequence

from paceline.model.jobs.nodes import KINDS, Resources
from paceline.model.roles import ReplicaId
from paceline.scheduling.items import Item

#: The most steps of one packing, some two seconds; usual jobs take some thousands.
MOST_STEPS = 20_000_000
#: Tables of more states would take too much memory.
_MOST_STATES = 1_000_000
_IMPOSSIBLE = -1
_State = int  # the numbers of all kinds but the last, as one number in a mixed radix
_Table = tuple[tuple[tuple[int, ...], int], ...]  # numbers of the others on a node, and the most of the last


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """The number of items of each kind on each node; as many of the last kind as fit, up to all."""

    placed: Mapping[str, Mapping[str, int]]

    def count(self, name: str) -> int:
        """Return how many items of a kind are placed."""
        return sum(there.get(name, 0) for there in self.placed.values())

    def is_whole(self, items: Sequence[Item]) -> bool:
        """Return whether all items are placed."""
        return all(self.count(item.name) == item.count for item in items)

    def places(self, items: Sequence[Item]) -> dict[ReplicaId, str]:
        """Return the node of each replica; items are assigned in the order of their members."""
        waiting = {item.name: iter(item.members) for item in items}
        places = {}
        for node, there in self.placed.items():
            for name, count in there.items():
                for _ in range(count):
                    places.update(dict.fromkeys(next(waiting[name]), node))
        return places


def pack(items: Sequence[Item], free: Mapping[str, Resources]) -> Packing | None:
    """Place all items of every kind but the last, and then as many of the last kind as fit.

    Args:
        items: the kinds.
        free: the free resources of each node, by name; nodes with the most free cores are used first.

    Returns:
        The packing; None: not even all items of the other kinds fit, or to know it takes too many steps.
    """
    if not items:
        return Packing(placed={})
    *others, last = items
    least = sum((item.takes * item.count for item in others), Resources())
    if _whole(free.values()).lacking(least):
        return None
    states = _States([item.count for item in others])
    if states.last > min(MOST_STEPS, _MOST_STATES):
        return None
    steps = 0
    best = [0, *[_IMPOSSIBLE] * states.last]
    useful = sum(item.count for item in items)
    seen: collections.Counter[_Table] = collections.Counter()
    taken: list[tuple[str, _Table, list[int], dict[_State, int]]] = []

    @functools.cache
    def table_of(left: Resources) -> _Table | None:
        is_small = _ways(others, left) * states.last <= MOST_STEPS
        return _table(others, last, left) if is_small else None

    for name in sorted(free, key=lambda name: (-free[name].millicores, -free[name].memory_bytes, name)):
        if best[states.last] >= last.count:
            break
        table = table_of(free[name])
        if table is None:
            return None
        seen[table] += 1
        if (len(table) == 1 and table[0][1] == 0) or seen[table] > useful:
            continue
        steps += len(table) * states.last
        if steps > MOST_STEPS:
            return None
        before = best
        best, chosen = states.advance(best, table, last.count)
        if chosen:
            taken.append((name, table, before, chosen))
    return _traced(items, states, taken, best)


class _States:
    """States as indices: the numbers of several kinds as one number, from none (0) to all (``last``)."""

    def __init__(self, counts: Sequence[int]) -> None:
        self._counts = counts
        self._strides = [math.prod(count + 1 for count in counts[:place]) for place in range(len(counts))]
        self.last = math.prod(count + 1 for count in counts) - 1
        self._above = functools.cache(self._find_above)

    def index(self, numbers: Sequence[int]) -> _State:
        return sum(number * stride for number, stride in zip(numbers, self._strides, strict=True))

    def _find_above(self, numbers: tuple[int, ...]) -> tuple[_State, ...]:
        """Return the states with at least the given number of each kind."""
        ranges = [range(number, count + 1) for number, count in zip(numbers, self._counts, strict=True)]
        return tuple(self.index(each) for each in itertools.product(*ranges))

    def advance(self, best: list[int], table: _Table, most: int) -> tuple[list[int], dict[_State, int]]:
        """Return the best values with one more node, and the row of its table that improved each state."""
        after, chosen = best.copy(), {}
        for row, (numbers, amount) in enumerate(table):
            offset = self.index(numbers)
            for state in self._above(numbers):
                before = best[state - offset]
                if before != _IMPOSSIBLE and min(before + amount, most) > after[state]:
                    after[state] = min(before + amount, most)
                    chosen[state] = row
        return after, chosen


def _whole(free: Collection[Resources]) -> Resources:
    """Return what nodes have free together; a node may have less than nothing."""
    return Resources(**{kind: sum(max(0, getattr(each, kind)) for each in free) for kind in KINDS})


def _ways(others: Sequence[Item], left: Resources) -> int:
    """Return how many combinations of the other kinds are tried on a node."""
    return math.prod(_most(item, left) + 1 for item in others)


def _table(others: Sequence[Item], last: Item, left: Resources) -> _Table:
    """Return the combinations of the other kinds that fit on a node, each with the most of the last kind."""
    found = []
    for numbers in itertools.product(*(range(_most(item, left) + 1) for item in others)):
        there = {item.name for item, number in zip(others, numbers, strict=True) if number}
        if any(item.apart_from & there for item in others if item.name in there):
            continue
        total = sum((item.takes * n for item, n in zip(others, numbers, strict=True)), Resources())
        if not left.lacking(total):
            found.append((numbers, 0 if last.apart_from & there else _most(last, left - total)))
    return tuple(found)


def _most(item: Item, left: Resources) -> int:
    most = min(item.count, left.times(item.takes))
    return most if item.per_node is None else min(most, item.per_node)


def _traced(
    items: Sequence[Item],
    states: _States,
    taken: Sequence[tuple[str, _Table, list[int], dict[_State, int]]],
    best: list[int],
) -> Packing | None:
    """Return the packing, traced from the last node back to the first."""
    state = states.last
    if best[state] == _IMPOSSIBLE:
        return None
    *others, last = items
    placed, amount = {}, best[state]
    for name, table, before, chosen in reversed(taken):
        if state not in chosen:
            continue
        numbers, _ = table[chosen[state]]
        state -= states.index(numbers)
        there = {item.name: number for item, number in zip(others, numbers, strict=True) if number}
        if amount > before[state]:
            there[last.name] = amount - before[state]
        placed[name] = there
        amount = before[state]
    return Packing(placed=placed)
