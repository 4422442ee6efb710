"""Comparisons of a plan of variables with a model, or with another plan."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from paceline.model.variables.variable_plans import Plan
from paceline.model.variables.variables import Shard, Variable


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class VariableDifference:
    """The difference between two plans for one variable.

    Attributes:
        variable: the name of the variable.
        before: its shards in the first plan; empty if this plan does not have it.
        after: its shards in the second plan; empty if this plan does not have it.
        moved_bytes: the bytes that are on another parameter server afterwards, slots included, or all bytes
            if rows are stored in another order; None: a plan lacks the variable, or its shape differs.
    """

    variable: str
    before: tuple[Shard, ...]
    after: tuple[Shard, ...]
    moved_bytes: int | None

    @property
    def is_reordered(self) -> bool:
        """Whether its rows are stored in another order, so that most of them move."""
        orders = {shards[0].layout.stored_as for shards in (self.before, self.after) if shards}
        return self.moved_bytes is not None and len(orders) > 1


def fitted(plan: Plan, variables: Sequence[Variable], servers: int) -> Plan:
    """Return a plan with the given variables instead of its own: the same shards on the same servers.

    Raises:
        ValueError: the plan is for another number of servers or for other variables; the message says which.
    """
    misfits = [] if plan.servers == servers else [f"it is for {plan.servers} ps, and there are {servers}"]
    misfits += _misfits(plan.variables, variables)
    if misfits:
        raise ValueError("; ".join(misfits))
    return Plan(
        servers=servers,
        shards=tuple(
            dataclasses.replace(shard, variable=variable)
            for variable in variables
            for shard in plan.of(variable.name)
        ),
    )


def _misfits(planned: Sequence[Variable], wanted: Sequence[Variable]) -> Iterator[str]:
    planned_by_name = {variable.name: variable for variable in planned}
    names = {variable.name for variable in wanted}
    for variable in wanted:
        other = planned_by_name.get(variable.name)
        if other is None:
            yield f"it lacks the variable {variable.name!r}"
        elif other.shape != variable.shape:
            yield f"{variable.name!r} has the shape {list(other.shape)} in it, not {list(variable.shape)}"
        elif other.sparse != variable.sparse:
            yield f"{variable.name!r} is {'a table' if other.sparse else 'no table'} in it"
    for name in planned_by_name:
        if name not in names:
            yield f"it has a variable {name!r} that the model lacks"


def differences(before: Plan, after: Plan) -> tuple[VariableDifference, ...]:
    """Return the variables that differ, in the order of ``after``; variables that it lacks come last."""
    names = dict.fromkeys(variable.name for plan in (after, before) for variable in plan.variables)
    found = (_difference(name, before.of(name), after.of(name)) for name in names)
    return tuple(each for each in found if each is not None)


def _difference(name: str, before: tuple[Shard, ...], after: tuple[Shard, ...]) -> VariableDifference | None:
    moved_bytes = None
    if before and after and before[0].variable.shape == after[0].variable.shape:
        if _places(before) == _places(after):
            return None
        moved_bytes = _moved_bytes(before, after)
    return VariableDifference(variable=name, before=before, after=after, moved_bytes=moved_bytes)


def _places(shards: Sequence[Shard]) -> tuple[object, ...]:
    return shards[0].layout.stored_as, *(shard.server for shard in shards)


def _moved_bytes(before: Sequence[Shard], after: Sequence[Shard]) -> int:
    """Return the bytes that are on another server afterwards, from the overlaps of both plans' row ranges."""
    variable, layout = after[0].variable, after[0].layout
    if before[0].layout.stored_as != layout.stored_as:
        return variable.memory_bytes
    starts = [[shard.layout.start(shard.index) for shard in shards] for shards in (before, after)]
    edges = sorted({*starts[0], *starts[1], layout.rows})
    moved: int = sum(
        last - first
        for first, last in itertools.pairwise(edges)
        if _server(before, starts[0], first) != _server(after, starts[1], first)
    )
    return moved * variable.row_bytes * (1 + variable.slots)


def _server(shards: Sequence[Shard], starts: Sequence[int], place: int) -> int:
    return shards[bisect.bisect_right(starts, place) - 1].server
