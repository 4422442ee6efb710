"""Analyzes a run of a graph: whether it trains, and where its loss, global step and batch are.

A run trains if the operations that it needs include the update of a variable and, if the script computed
gradients, some of these gradients. So an evaluation is no step, nor is filling a queue, nor the other half of
a pair of networks (where the global step belongs to another run).
"""

from __future__ import absolute_import

import re
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Mapping, Optional, Set, Tuple

    Operations = Dict[str, Any]

#: Operations that change a variable in the way optimizers do.
UPDATES = re.compile(
    r"^(Resource)?(Sparse)?Apply[A-Z]|^(Resource)?Scatter(Nd)?(Add|Sub|Update|Mul|Div|Max|Min)(NonAliasing)?$"
    r"|^Assign(Add|Sub)?(VariableOp)?$|Accumulator(Apply|Set)"
)
#: Operations whose outputs are a batch, or a part of it, made of their inputs.
_INPUTS = re.compile(r"^(ParseExample(V2)?|Batch(V2)?)$")
#: Those that take it from where other operations have put it, whatever the script feeds.
_SOURCES = re.compile(r"IteratorGetNext|Queue\w*Dequeue\w*V2$")
#: The names of the three placeholders of a sparse one, below its own.
_SPARSE = ("indices", "values", "shape")
PLACEHOLDERS = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")
#: Reading a variable changes nothing.
_VARIABLES = ("VariableV2", "Variable", "VarHandleOp", "ReadVariableOp", "ResourceGather")
_STEP = "global_step"
_COUNTS = ("AssignAdd", "AssignAddVariableOp")


class Gradients(object):
    """Gradients that a script has computed.

    Attributes:
        loss: the name of the tensor whose gradients they are.
        names: the names of the operations that make them.
        sparse: whether only some rows have a gradient, by the name of the variable's operation.
    """

    def __init__(self, loss, names, sparse):
        # type: (str, Set[str], Dict[str, bool]) -> None
        self.loss = loss
        self.names = names
        self.sparse = sparse


class Facts(object):
    """What is known of the graphs that a script has built; graphs are referenced weakly."""

    def __init__(self):
        # type: () -> None
        self._gradients = weakref.WeakKeyDictionary()  # type: weakref.WeakKeyDictionary[Any, List[Gradients]]
        self._counting = weakref.WeakSet()  # type: weakref.WeakSet[Any]

    def add_gradients(self, graph, gradients):
        # type: (Any, Gradients) -> None
        """Note gradients that were computed in a graph."""
        self._gradients.setdefault(graph, []).append(gradients)

    def gradients(self, graph):
        # type: (Any) -> List[Gradients]
        """Return the gradients that a graph computes, oldest first."""
        return self._gradients.get(graph, [])

    def note_counting(self, graph):
        # type: (Any) -> None
        """Note that a run of a graph increments the global step."""
        self._counting.add(graph)

    def counts_steps(self, graph):
        # type: (Any) -> bool
        """Return whether a known run of a graph increments the global step."""
        return graph in self._counting


class TrainingRun(object):
    """A run that makes a step.

    Args:
        graph: its graph, which this object does not keep alive.
        needed: the operations that the run needs, by name.
        tensors: tensors that can be fetched with it: ``step``, ``loss``, and ``rows``, which has one row for
            each example.
        batch: how many examples a step takes, if shapes show it.
        is_fed: whether the script makes the batch itself and feeds it.

    Attributes:
        graph: returns the graph; None: it is gone.
        first: the identity of the run's first item, if every run that begins with it makes a step; 0: such a
            run may make none; None: not yet analyzed.
    """

    def __init__(self, graph, needed, tensors, batch, is_fed):
        # type: (Any, Operations, Mapping[str, Any], Optional[int], bool) -> None
        self.graph = weakref.ref(graph)
        self.first = None  # type: Optional[int]
        self._needed = {name for name, each in needed.items() if is_stateful(each)}
        self._names = {
            name: tensor.name
            for name, tensor in tensors.items()
            if tensor is not None and self.allows(tensor)
        }
        self._batch = batch
        self.is_fed = is_fed

    def allows(self, tensor):
        # type: (Any) -> bool
        """Return whether fetching a tensor with the run causes nothing that the run would not do anyway.

        The run itself must need every operation that draws a random number or takes a batch, and every
        placeholder.
        """
        graph = self.graph()
        return (
            graph is not None
            and bool(graph.is_fetchable(tensor))
            and all(
                name in self._needed for name, each in ancestors([tensor.op]).items() if is_stateful(each)
            )
        )

    def tensors(self):
        # type: () -> List[Any]
        """Return the tensors to fetch with a step whose report is due."""
        graph = self.graph()
        return [] if graph is None else [graph.get_tensor_by_name(name) for name in self._names.values()]

    def step_alone(self):
        # type: () -> List[Any]
        """Return only the global step of these tensors, if there is one."""
        return [each for each in self.tensors() if each.name == self._names.get("step")]

    def described(self):
        # type: () -> str
        """Return in words which tensors of the run are known."""
        names = self._names
        batch = "fed" if self.is_fed else "of %d examples" % self._batch if self._batch else None
        return "loss: %s; global step: %s; batch: %s" % (
            names.get("loss", "not seen"),
            names.get("step", "not seen"),
            batch or names.get("rows", "not seen"),
        )

    def read(self, by_name, feeds):
        # type: (Mapping[str, Any], Mapping[Any, Any]) -> Dict[str, Any]
        """Return the values for a report: ``step``, ``loss`` and ``batch``, the number of examples.

        Args:
            by_name: the values fetched with a step, by the names of tensors.
            feeds: the arrays that the step was fed.
        """
        loss, step, rows = (by_name.get(self._names.get(name, "")) for name in ("loss", "step", "rows"))
        batch = self._batch
        if rows is not None:
            batch = len(rows)
        elif self.is_fed:
            batch = max((value.shape[0] for value in _dense(feeds) if value.ndim), default=None)
        return {
            "step": None if step is None else int(step),
            "loss": None if loss is None else float(loss.mean()),
            "batch": batch,
        }


def _dense(feeds):
    # type: (Mapping[Any, Any]) -> List[Any]
    """Return the arrays that a step was fed, without those of sparse tensors, whose rows are no examples."""
    names = {str(tensor).partition(":")[0] for tensor in feeds}
    prefixes = {name[: -len("indices")] for name in names if name.endswith("/indices")}
    sparse = {prefix + part for prefix in prefixes for part in _SPARSE if prefix + "values" in names}
    return [value for tensor, value in feeds.items() if str(tensor).partition(":")[0] not in sparse]


def is_stateful(operation):
    # type: (Any) -> bool
    """Return whether running an operation matters: it is fed, draws numbers or changes something."""
    if operation.type in PLACEHOLDERS:
        return True
    if operation.type in _VARIABLES:
        return False
    definition = operation.op_def  # Before 1.5 some TensorFlow operations have no definition.
    return definition is None or definition.is_stateful or UPDATES.search(operation.type) is not None


def ancestors(operations):
    # type: (Iterable[Any]) -> Operations
    """Return the given operations and all operations that they need, by name."""
    found = {}  # type: Operations
    left = list(operations)
    while left:
        operation = left.pop()
        if operation.name not in found:
            found[operation.name] = operation
            left.extend(tensor.op for tensor in operation.inputs)
            left.extend(operation.control_inputs)
    return found


def training_run(graph, targets, fetches, facts):
    # type: (Any, List[Any], List[Any], Facts) -> Optional[Tuple[TrainingRun, Operations]]
    """Return what a run trains, and the operations that it needs; None: it makes no step."""
    needed = ancestors(list(targets) + [tensor.op for tensor in fetches])
    updates = [operation for operation in needed.values() if UPDATES.search(operation.type)]
    gradients = [each for each in facts.gradients(graph) if not each.names.isdisjoint(needed)]
    step = global_step(graph)
    counts = step is not None and any(
        operation.type in _COUNTS and operation.inputs[0].op.name == step.op.name for operation in updates
    )
    if not updates or not (gradients or (counts and not facts.gradients(graph))):
        return None
    if counts:
        facts.note_counting(graph)
    elif facts.counts_steps(graph):
        return None
    loss = graph.get_tensor_by_name(gradients[0].loss) if gradients else None
    inputs = ancestors([loss.op]) if loss is not None else needed
    batch, rows = _batch(filter(_makes_batch, inputs.values()))
    # A number that is fed besides, such as a rate of dropout, is no batch.
    is_fed = batch is None and rows is None and _feeds_rows(inputs)
    tensors = {
        "step": None if step is None else _value(step),
        "loss": loss,
        "rows": rows,
    }
    return TrainingRun(graph, needed, tensors, batch, is_fed), needed


def global_step(graph):
    # type: (Any) -> Any
    """Return the variable that counts steps, found as TensorFlow finds it; None: there is none."""
    marked = graph.get_collection(_STEP)
    if marked:
        return marked[0]
    return next((each for each in graph.get_collection("variables") if each.op.name == _STEP), None)


def _value(variable):
    # type: (Any) -> Any
    """Return the tensor by which the graph already reads a variable; nothing is added to the graph."""
    for name in ("_graph_element", "_snapshot", "_variable"):
        found = getattr(variable, name, None)
        if found is not None:
            return found
    return None


def _makes_batch(operation):
    # type: (Any) -> bool
    """Return whether the outputs of an operation are a batch that the script does not feed."""
    if _SOURCES.search(operation.type):
        return True
    return _INPUTS.search(operation.type) is not None and not _feeds_rows(ancestors([operation]))


def _feeds_rows(operations):
    # type: (Operations) -> bool
    """Return whether one of some operations is fed an array; a placeholder without a shape may be."""
    return any(each.type in PLACEHOLDERS and each.outputs[0].shape.ndims != 0 for each in operations.values())


def _batch(inputs):
    # type: (Iterable[Any]) -> Tuple[Optional[int], Any]
    """Return how many examples a batch has, if shapes show it; else a tensor with one row per example."""
    outputs = [tensor for each in inputs for tensor in _parts(each) if tensor.shape.ndims]
    sizes = [tensor.shape.as_list()[0] for tensor in outputs]
    known = [size for size in sizes if size]
    if known:
        return max(known), None
    smallest = sorted(outputs, key=lambda each: (each.dtype.name == "string", each.shape.ndims, each.name))
    return None, smallest[0] if smallest else None


def _parts(operation):
    # type: (Any) -> List[Any]
    """Return the outputs of an operation that are a batch, or a part of it, with one row per example.

    An operation that parses examples also has sparse and ragged outputs, whose rows are something else.
    """
    outputs = list(operation.outputs)
    if not operation.type.startswith("ParseExample"):
        return outputs
    if operation.inputs[0].shape.ndims == 0:  # It parses a single example.
        return []
    is_old = operation.type == "ParseExample"
    begin = 3 * int(operation.get_attr("Nsparse" if is_old else "num_sparse"))
    return outputs[begin : begin + len(operation.get_attr("Tdense"))]
