"""Describes the variables that a script trains: shapes, actual devices, updates, and which rows are used.

The description is written as ``variables.json`` into the run's folder, in the form that ``paceline plan``
reads.
"""

from __future__ import absolute_import

import json
import os
import re
import sys
import weakref

from . import graphs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

    Described = Dict[str, Any]

#: Operations that look up rows of a variable by their ids.
_LOOKUPS = ("GatherV2", "Gather", "ResourceGather")
#: Operations between a variable and the user of its value.
PASSED = ("Identity", "ReadVariableOp", "Enter")
#: Stands for the device of a variable that the script does not place: the variable is where the session runs.
UNPLACED = "unplaced"
#: Bytes of a value.
_SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
_VARIABLES = ("VariableV2", "Variable", "VarHandleOp")
#: Row use is counted over this many batches, in this many equal ranges of rows.
BATCHES = 20
RANGES = 64
#: Names of an optimizer's own operations, which also look up rows.
_OWN = re.compile(r"(^|/)(gradients|update|save)(_\d+)?/|/update_")


class Model(object):
    """The model of the graph that trains; if a script has several, the first.

    Args:
        path: the file to write; None: another replica writes it.
    """

    def __init__(self, path):
        # type: (Optional[str]) -> None
        self._path = path
        self._variables = {}  # type: Dict[str, Described]
        self._lookups = {}  # type: Dict[str, List[Lookup]]
        self._usages = {}  # type: Dict[str, Usage]
        self._batches = 0
        self._graph = None  # type: Optional[weakref.ref[Any]]

    def describe(self, graph, needed, facts):
        # type: (Any, graphs.Operations, graphs.Facts) -> None
        """Describe the variables of a graph, unless variables were already described."""
        if self._path is None or self._variables:
            return
        self._graph = weakref.ref(graph)
        self._variables = variables(graph, needed, facts)
        self._lookups = lookups(needed, self._variables, first_rows(graph.get_collection("variables")))
        self._write()

    def describe_trained(self, optimizer, pairs):
        # type: (Any, List[Tuple[Any, Any]]) -> None
        """Describe the variables that a Keras optimizer changes, unless variables were already described.

        Args:
            optimizer: the optimizer; its variables that are not trained are its slots.
            pairs: gradients, each with the variable that it belongs to.
        """
        if self._path is None or self._variables:
            return
        kept = optimizer.variables() if callable(optimizer.variables) else optimizer.variables
        self._variables = trained_variables(type(optimizer).__name__, list(kept), pairs)
        self._write()

    def wanted(self, run):
        # type: (graphs.TrainingRun) -> List[Any]
        """Return the tensors of ids that a step looks up, until enough batches were counted."""
        graph = run.graph()  # type: Any
        if self._batches >= BATCHES or not self._describes(graph):
            return []
        names = sorted({each.ids for every in self._lookups.values() for each in every})
        return [each for each in map(graph.get_tensor_by_name, names) if run.allows(each)]

    def _describes(self, graph):
        # type: (Any) -> bool
        """Return whether a graph is the described one: a script may build another, with other tensors."""
        return graph is not None and self._graph is not None and self._graph() is graph

    def take(self, run, by_name):
        # type: (graphs.TrainingRun, Mapping[str, Any]) -> None
        """Count the rows that a step has looked up.

        Args:
            run: the step.
            by_name: the values fetched with the step, by the names of tensors.
        """
        if self._path is None or self._batches >= BATCHES or not self._describes(run.graph()):
            return
        self._batches += 1
        for variable, every in self._lookups.items():
            if all(each.ids in by_name for each in every):
                found = [(by_name[each.ids], each.first_row) for each in every]
                if variable not in self._usages:
                    id_bytes = found[0][0].dtype.itemsize
                    self._usages[variable] = Usage(self._variables[variable]["shape"][0], id_bytes)
                self._usages[variable].add(found)
        if self._batches == BATCHES:
            for variable, usage in self._usages.items():
                self._variables[variable].update(usage.told(self._variables[variable]))
            self._write()

    def _write(self):
        # type: () -> None
        """Write the file, whole or not at all."""
        assert self._path is not None
        temporary = "%s.%d.tmp" % (self._path, os.getpid())
        try:
            _remove_left(self._path)
            with open(temporary, "w") as file:
                json.dump({"variables": list(self._variables.values())}, file, indent=1)
            os.replace(temporary, self._path)
        except OSError:
            pass  # The disk is full or the folder read-only: reports of steps do not need the file.


def _remove_left(path):
    # type: (str) -> None
    """Remove temporary files of processes that were killed while they wrote a file."""
    folder, name = os.path.split(path)
    for each in os.listdir(folder):
        process = each[len(name) + 1 : -len(".tmp")]
        if each.startswith(name + ".") and each.endswith(".tmp") and process.isdigit():
            try:
                os.kill(int(process), 0)
            except ProcessLookupError:
                os.unlink(os.path.join(folder, each))


class Usage(object):
    """Counts which rows of a table the batches look up.

    Args:
        rows: how many rows the table has.
        id_bytes: the size of an id in bytes.
    """

    def __init__(self, rows, id_bytes):
        # type: (int, int) -> None
        self._rows = rows
        self._id_bytes = id_bytes
        self._ranges = [0] * min(RANGES, rows)
        self._distinct = 0
        self._ids = 0
        self._batches = 0

    def add(self, lookups):
        # type: (Sequence[Tuple[Any, int]]) -> None
        """Count a batch's lookups: arrays of ids of any shape, each with the table row of id 0."""
        numpy = sys.modules["numpy"]  # Arrays come from numpy, so it is loaded.
        found = numpy.concatenate([ids.ravel().astype("int64") + first_row for ids, first_row in lookups])
        rows = found[(found >= 0) & (found < self._rows)]
        counted = numpy.bincount(rows * len(self._ranges) // self._rows, minlength=len(self._ranges))
        self._ranges = [before + int(now) for before, now in zip(self._ranges, counted)]
        self._distinct += len(numpy.unique(found))
        self._ids += len(found)
        self._batches += 1

    def told(self, described):
        # type: (Described) -> Described
        """Return the fields that the counts add to the table's description.

        A step sends each id that it looks up, receives the id's row and sends the row's gradient back.
        """
        row_bytes = described["element_bytes"]
        for size in described["shape"][1:]:
            row_bytes *= size
        batches, total = float(max(1, self._batches)), float(sum(self._ranges) or 1)
        return {
            "rows_used": self._distinct / batches,
            "row_shares": [round(count / total, 6) for count in self._ranges],
            "step_bytes": self._ids / batches * (2 * row_bytes + self._id_bytes),
        }


class Lookup(object):
    """A lookup of rows, in a table or in one of its parts, that a step makes.

    Args:
        ids: the name of the tensor of ids.
        first_row: the row of the table that id 0 stands for.
    """

    def __init__(self, ids, first_row):
        # type: (str, int) -> None
        self.ids = ids
        self.first_row = first_row


def variables(graph, needed, facts):
    # type: (Any, graphs.Operations, graphs.Facts) -> Dict[str, Described]
    """Return what is known of each trained variable, by name; a partitioned variable counts as one."""
    sparse = {}  # type: Dict[str, bool]
    for gradients in facts.gradients(graph):
        sparse.update(gradients.sparse)
    updates = _updates(needed)
    graph_variables = graph.get_collection("variables")
    trained = {}  # type: Dict[str, Described]
    for variable in graph_variables:
        name = variable.op.name
        if name not in sparse or variable.shape.ndims is None:
            continue
        slots = [
            slot.op.name
            for slot in graph_variables
            if slot.op.name.startswith(name + "/") and slot.shape == variable.shape
        ]
        cut = getattr(variable, "_save_slice_info", None)
        whole = cut.full_name if cut else name
        described = trained.setdefault(
            whole,
            {
                "name": whole,
                "shape": [int(size) for size in (cut.full_shape if cut else variable.shape.as_list())],
                "sparse": False,
                "element_bytes": variable.dtype.base_dtype.size,
                "slots": len(slots),
                "step_bytes": None,
                "row_shares": [],
                "rows_used": None,
                "value_type": variable.dtype.base_dtype.name,
                "devices": [],
                "updates": [],
            },
        )
        described["sparse"] = described["sparse"] or sparse[name]
        described["devices"].append(variable.op.device or UNPLACED)
        kinds = {kind for owner in [name] + slots for kind in updates.get(owner, ())}
        described["updates"] = sorted(kinds.union(described["updates"]))
    _add_dense_traffic(trained)
    return trained


def trained_variables(optimizer, kept, pairs):
    # type: (str, Sequence[Any], Sequence[Tuple[Any, Any]]) -> Dict[str, Described]
    """Return what is known of each variable that a Keras optimizer changes, by name.

    Args:
        optimizer: the name of the optimizer's class.
        kept: the optimizer's own variables, including its slots.
        pairs: gradients, each with the variable that it belongs to.
    """
    trained = {}  # type: Dict[str, Described]
    latest = {}  # type: Dict[str, str]  # The name of the last variable of each name.
    for gradient, variable in pairs:
        if gradient is None:
            continue
        name = str(getattr(variable, "path", None) or variable.name).split(":")[0]
        base, mark, part = name.rpartition("/part_")
        is_later_part = bool(mark) and part.isdigit() and int(part) > 0 and base in latest
        if not is_later_part:
            base = base if mark and part.isdigit() else name
            latest[base] = _unused(base, trained)
        whole = latest[base]
        shape = [int(size) for size in variable.shape]
        slots = [slot for slot in kept if [int(size) for size in slot.shape] == shape and shape]
        sharing = [peer for _, peer in pairs if [int(size) for size in peer.shape] == shape]
        value_type = getattr(variable.dtype, "name", str(variable.dtype))
        described = trained.setdefault(
            whole,
            {
                "name": whole,
                "shape": list(shape),
                "sparse": hasattr(gradient, "indices"),
                "element_bytes": _SIZES.get(value_type, 4),
                "slots": len(slots) // max(1, len(sharing)),
                "step_bytes": None,
                "row_shares": [],
                "rows_used": None,
                "value_type": value_type,
                "devices": [],
                "updates": [optimizer],
            },
        )
        if is_later_part:  # Its rows follow the earlier parts' rows.
            described["shape"][0] += shape[0]
        described["devices"].append(_device(variable))
    _add_dense_traffic(trained)
    return trained


def _unused(name, found):
    # type: (str, Dict[str, Described]) -> str
    """Return a name, with a number if another variable has it: eager variables may share their names."""
    number, unused = 0, name
    while unused in found:
        number += 1
        unused = "%s_%d" % (name, number)
    return unused


def _add_dense_traffic(found):
    # type: (Dict[str, Described]) -> None
    """Set the traffic of variables with dense gradients: a step pulls and pushes all values."""
    for described in found.values():
        if not described["sparse"]:
            values = 1
            for size in described["shape"]:
                values *= size
            described["step_bytes"] = 2.0 * values * described["element_bytes"]


def _device(variable):
    # type: (Any) -> str
    """Return where a variable is, in the form that graphs use: ``/job:ps/task:0``."""
    device = getattr(variable, "device", None) or getattr(getattr(variable, "value", None), "device", None)
    parts = [part for part in str(device or "").split("/") if part.startswith(("job:", "task:"))]
    return "/" + "/".join(parts) if parts else UNPLACED


def _updates(needed):
    # type: (graphs.Operations) -> Dict[str, List[str]]
    """Return the types of operations that change each variable, by the name of the variable's operation."""
    found = {}  # type: Dict[str, List[str]]
    for each in needed.values():
        if graphs.UPDATES.search(each.type) and each.inputs:
            found.setdefault(each.inputs[0].op.name, []).append(each.type)
    return found


def first_rows(known):
    # type: (Sequence[Any]) -> Dict[str, Tuple[str, int]]
    """Return each variable's table and its first row in that table, by the variable's name.

    Args:
        known: variables; those that are cut along their columns are left out.
    """
    found = {}  # type: Dict[str, Tuple[str, int]]
    for each in known:
        cut = getattr(each, "_save_slice_info", None)
        if cut is None:
            found[each.op.name] = each.op.name, 0
        elif list(cut.var_shape)[1:] == list(cut.full_shape)[1:]:
            found[each.op.name] = cut.full_name, int(cut.var_offset[0])
    return found


def lookups(needed, described, tables):
    # type: (graphs.Operations, Mapping[str, Described], Mapping[str, Tuple[str, int]]) -> Dict[str, List[Lookup]]
    """Return the lookups of a step in each table, by the table's name.

    Args:
        needed: the operations of a step.
        described: the variables that are trained.
        tables: each variable's table, and its first row in that table.
    """
    by_table = {}  # type: Dict[str, Dict[Tuple[str, int], Lookup]]
    for name in sorted(needed):
        operation = needed[name]
        if operation.type not in _LOOKUPS or _OWN.search(name) or not operation.inputs[1].dtype.is_integer:
            continue
        source = operation.inputs[0].op
        while source.type in PASSED and source.inputs:
            source = source.inputs[0].op
        table, first_row = tables.get(source.name, ("", 0))
        if source.type in _VARIABLES and table in described and described[table]["sparse"]:
            ids = operation.inputs[1].name
            by_table.setdefault(table, {})[ids, first_row] = Lookup(ids, first_row)
    return {table: list(every.values()) for table, every in by_table.items()}
