"""Which variable an operation of a server reads or updates, by names and shapes in profiles: pure.

The names are those of layers: `model/site/Gather_1` reads part 1 of `model/site`; its gradient
`gradient_tape/model/site/Gather_1/Reshape` goes to `Adagrad/update_3/Unique`, so `Adagrad/update_3` updates
that part. If the model's variables are known, and only one of them fits the server and the shape, this takes
precedence over the names (`placements`).
"""

from __future__ import annotations

import collections
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping

from paceline.model.variables.variables import part_name
from paceline.tracing import placements, shapes
from paceline.tracing.profiled_processes import SERVER, Process, Sent
from paceline.tracing.shapes import Dimensions

GATHER = "ResourceGather"
"""The kind of operation that looks up rows."""
CHANGES = r"(?P<rows>Resource(SparseApply|Scatter)\w*)|ResourceApply\w*|Assign(Add|Sub)?VariableOp"
"""The kinds of operations that change a variable, or some rows of one."""

_READ, _UNIQUE = re.compile(r"/ReadVariableOp(_\d+)?$"), "Unique"
_OF_GRADIENTS = re.compile(r"(^|/)(gradient_tape|gradients)/")
_WRAPPINGS = re.compile(
    r"(while|cond|body|then|else|_\d+|gradient_tape|gradients|(Stateful)?PartitionedCall(_\d+)?)$"
)
_LOOKUP = re.compile(r"(?P<layer>.+?)(/embedding_lookup\w*)?(/Gather(_(?P<part>\d+))?)?$")
_APPLY = re.compile(r"ResourceApply")
_CHANGES = re.compile(CHANGES)
_UPDATE = re.compile(r"(?P<update>.+/update(_\d+)?)/")


class Owners:
    """Finds the variable that an operation of a server reads or updates, by names and shapes."""

    def __init__(self, processes: Mapping[str, Process], placed: placements.Placements) -> None:
        self._placed = placed
        self._gathers = {
            (task, operation.name)
            for task, process in processes.items()
            for operation in process.operations
            if operation.kind == GATHER
        }
        self._uniques = {
            (task, operation.name)
            for task, process in processes.items()
            for operation in process.operations
            if operation.kind.startswith(_UNIQUE)
        }
        all_sent = [(task, sent) for task, process in processes.items() for sent in process.sent]
        variables = _looked_up(_unwrapped(name) for _, name in self._gathers)
        self._owners = {key: variables[_unwrapped(key[1])] for key in self._gathers}
        reads = {
            (task, sent.maker): _unwrapped(_READ.sub("", sent.maker))
            for task, sent in all_sent
            if _READ.search(sent.maker)
        }
        variables.update((name, name) for name in reads.values())
        for _, sent in all_sent:
            update = _UPDATE.match(sent.taker)
            if update and _OF_GRADIENTS.search(sent.maker):
                owner = _nearest(variables, _unwrapped(sent.maker))
                if owner is not None:
                    self._owners[sent.receiver, update["update"]] = owner
        trained = set(self._owners.values())
        self._owners.update((key, name) for key, name in reads.items() if name in trained)
        pulled = _pulled(processes, placed, self._gathers)
        self._take({**_pushed(processes, placed), **_changed(processes, placed), **pulled})
        self._shapes = {
            name: max(taken, key=lambda each: each.bytes).dimensions
            for task, process in processes.items()
            for operation in process.operations
            if _APPLY.match(operation.kind)
            and (name := self.of(task, operation.name)) is not None
            and (taken := shapes.read(operation.shapes))
        }

    def _take(self, certain: Mapping[tuple[str, str], str]) -> None:
        """Replace what follows from names by what is certain, for every operation of the layer concerned."""
        meant: dict[str, set[str]] = collections.defaultdict(set)
        for key, variable in certain.items():
            if key in self._owners:
                meant[self._owners[key]].add(variable)
        for key, layer in self._owners.items():
            if len(meant[layer]) == 1:
                (self._owners[key],) = meant[layer]
        self._owners.update(certain)

    def fits(self, task: str, sent: Sent) -> Callable[[Dimensions], bool]:
        """Return a function that says whether dimensions are those of the variable that is sent or updated.

        They may be those of the whole variable, as its update shows them, or of some of its rows.
        """
        name = self.of(task, sent.maker) or self.of(sent.receiver, sent.taker)
        return lambda dimensions: (
            name is not None and (self._placed.fits(name, dimensions) or self._shapes.get(name) == dimensions)
        )

    def of(self, task: str, name: str) -> str | None:
        """Return the variable of an operation, by the name of its layer and the number of its part."""
        update = _UPDATE.match(name)
        return self._owners.get((task, name)) or (
            self._owners.get((task, update["update"])) if update else None
        )

    def takes_ids(self, task: str, sent: Sent) -> bool:
        """Return whether a tensor that a task sends holds the ids of rows."""
        return (
            sent.taker.endswith(_UNIQUE)
            or (sent.receiver, sent.taker) in self._gathers
            or (task, sent.maker) in self._uniques
        )


def _changed(processes: Mapping[str, Process], placed: placements.Placements) -> dict[tuple[str, str], str]:
    """Return the variables that updates on servers change, if their shape fits only one variable."""
    variable_of_update = {}
    for task, process in processes.items():
        for name, runs in process.runs_of.items():
            changed = _CHANGES.match(runs[0].kind)
            values = [each for each in shapes.read(runs[0].shapes) if not each.is_integer] if changed else []
            if changed is None or not values:
                continue
            largest = max(values, key=lambda each: each.bytes).dimensions
            variable = placed.rows(task, largest[1:]) if changed["rows"] else placed.whole(task, [largest])
            if variable is not None:
                update = _UPDATE.match(name)
                variable_of_update[task, update["update"] if update else name] = variable
    return variable_of_update


def _pushed(processes: Mapping[str, Process], placed: placements.Placements) -> dict[tuple[str, str], str]:
    """Return the variables whose gradients servers take, if the takers' shape fits only one variable."""
    variable_of_taker = {}
    for task, name in {
        (sent.receiver, sent.taker) for process in processes.values() for sent in process.sent
    }:
        taker = processes[task].first(name, -math.inf) if task in processes else None
        taken = shapes.read(taker.shapes) if taker is not None and task.startswith(SERVER) else []
        dimensions = [each.dimensions for each in taken if each.dimensions and not each.is_integer]
        meant = {placed.whole(task, dimensions), *(placed.rows(task, each[1:]) for each in dimensions)}
        variables = [each for each in meant if each is not None]
        if len(variables) == 1:
            variable_of_taker[task, name] = variables[0]
    return variable_of_taker


def _pulled(
    processes: Mapping[str, Process], placed: placements.Placements, gathers: Collection[tuple[str, str]]
) -> dict[tuple[str, str], str]:
    """Return the variables that servers send, if the shape of the takers' inputs fits only one variable."""
    variable_of_maker = {}
    sent_by_maker = {
        (task, sent.maker): sent
        for task, process in processes.items()
        for sent in process.sent
        if (task, sent.maker) in gathers or _READ.search(sent.maker)
    }
    for (task, maker), sent in sent_by_maker.items():
        taker = processes[sent.receiver].first(sent.taker, -math.inf) if sent.receiver in processes else None
        taken = [] if taker is None else [one.dimensions for one in shapes.read(taker.shapes)]
        if (task, maker) in gathers:
            ids = [one.dimensions for one in shapes.read(processes[task].runs_of[maker][0].shapes)]
            rows = {one[len(some) :] for one in taken for some in ids if one[: len(some)] == some}
            variables = {placed.rows(task, one) for one in rows} - {None}
            variable = variables.pop() if len(variables) == 1 else None
        else:
            variable = placed.whole(task, taken)
        if variable is not None:
            variable_of_maker[task, maker] = variable
    return variable_of_maker


def _looked_up(names: Iterable[str]) -> dict[str, str]:
    """Return the variables that lookups of these names read: the layer, and the part if it has several."""
    found = {name: match for name in set(names) if (match := _LOOKUP.match(name))}
    parts = collections.Counter(match["layer"] for match in found.values())
    return {
        name: part_name(match["layer"], int(match["part"] or 0), parts[match["layer"]])
        for name, match in found.items()
    }


def _unwrapped(name: str) -> str:
    """Return a name without the loops, calls and gradients around it."""
    parts = name.split("/")
    while len(parts) > 1 and _WRAPPINGS.match(parts[0]):
        del parts[0]
    return "/".join(parts)


def _nearest(known: Mapping[str, str], name: str) -> str | None:
    """Return what is known of a name, or of the nearest name above it."""
    while name not in known and "/" in name:
        name = name.rpartition("/")[0]
    return known.get(name)
