"""What a run of a graph does: whether it trains, and where its loss, global step and batch are to be found.

A run trains when a variable is updated among the operations that it needs, and, where the script computed
gradients, some of these are among them as well. So neither an evaluation, nor a queue that is filled, nor the
other half of a pair of networks (where the global step is another run's) is a step.
"""

from __future__ import absolute_import

import re
import weakref

if False:  # for type checkers
    from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

#: Operations that change a variable as optimizers do.
_UPDATES = re.compile(
    r"^(Resource)?(Sparse)?Apply[A-Z]|^(Resource)?Scatter(Nd)?(Add|Sub|Update|Mul|Div|Max|Min)(NonAliasing)?$"
    r"|^Assign(Add|Sub)?(VariableOp)?$|Accumulator(Apply|Set)"
)
#: Operations whose outputs are a batch, or a part of it.
_INPUTS = re.compile(r"IteratorGetNext|Queue\w*Dequeue\w*V2$|^(Parse(Single)?Example|Batch)")
_STEP = "global_step"
_COUNTS = ("AssignAdd", "AssignAddVariableOp")


class Facts(object):
    """What a script has told TensorFlow while it built its graphs; graphs are known weakly.

    Attributes:
        total_steps: the last step, where a hook says it.
    """

    def __init__(self):
        # type: () -> None
        self.total_steps = None  # type: Optional[int]
        self._gradients = weakref.WeakKeyDictionary()  # type: weakref.WeakKeyDictionary[Any, List[Gradients]]
        self._counting = weakref.WeakSet()  # type: weakref.WeakSet[Any]

    def add_gradients(self, loss, names):
        # type: (Any, Set[str]) -> None
        """Note that gradients of a loss were computed, by operations of these names."""
        self._gradients.setdefault(loss.graph, []).append(Gradients(loss.name, names))

    def gradients(self, graph):
        # type: (Any) -> List[Gradients]
        """Return what gradients a graph computes, the first ones first."""
        return self._gradients.get(graph, [])

    def note_counting(self, graph):
        # type: (Any) -> None
        """Note that a run of a graph counts the global step."""
        self._counting.add(graph)

    def counts_steps(self, graph):
        # type: (Any) -> bool
        """Say whether a run of a graph that was seen counts the global step."""
        return graph in self._counting


class Gradients(object):
    """Gradients that a script has asked for: the name of their loss, and of the operations that make them."""

    def __init__(self, loss, names):
        # type: (str, Set[str]) -> None
        self.loss = loss
        self.names = names


class TrainingRun(object):
    """A run that makes a step.

    Args:
        graph: its graph, which is not kept alive by this.
        step: the tensor of the global step; None: the graph has none.
        loss: the tensor of the loss; None: not known.
        rows: a tensor with a row for each example, where shapes do not say how many there are.
        batch: how many examples a step takes, where shapes say it.
        is_fed: whether the script feeds the batch.
    """

    def __init__(self, graph, facts, step, loss, rows, batch, is_fed):
        # type: (Any, Facts, Any, Any, Any, Optional[int], bool) -> None
        self._graph = weakref.ref(graph)
        self._facts = facts
        self._names = {
            name: tensor.name
            for name, tensor in (("step", step), ("loss", loss), ("rows", rows))
            if tensor is not None and graph.is_fetchable(tensor)
        }
        self._batch = batch
        self._steps = 0
        self.is_fed = is_fed

    def extras(self, fetches):
        # type: (List[Any]) -> List[Any]
        """Return the tensors to fetch with a step whose report is due, those left out that it fetches itself."""
        graph = self._graph()
        own = {tensor.name for tensor in fetches}
        names = [name for name in self._names.values() if name not in own]
        return [] if graph is None else [graph.get_tensor_by_name(name) for name in names]

    def read(self, fetched, values, feeds):
        # type: (List[Any], List[Any], Any) -> Dict[str, Any]
        """Return what a report says, of the tensors and values that a step has given and was given."""
        by_name = {tensor.name: value for tensor, value in zip(fetched, values)}
        found = {name: by_name.get(tensor) for name, tensor in self._names.items()}
        loss, step, rows = found.get("loss"), found.get("step"), found.get("rows")
        batch = self._batch
        if rows is not None:
            batch = len(rows)
        elif self.is_fed:
            batch = max((value.shape[0] for value in feeds.values() if value.ndim), default=None)
        return {
            "step": None if step is None else int(step),
            "loss": None if loss is None else float(loss.mean()),
            "batch": batch,
            "total_steps": self._facts.total_steps,
        }


def ancestors(operations):
    # type: (Iterable[Any]) -> Dict[str, Any]
    """Return all operations that some need, themselves included, by name."""
    found = {}  # type: Dict[str, Any]
    left = list(operations)
    while left:
        operation = left.pop()
        if operation.name not in found:
            found[operation.name] = operation
            left.extend(tensor.op for tensor in operation.inputs)
            left.extend(operation.control_inputs)
    return found


def training_run(graph, targets, fetches, facts):
    # type: (Any, List[Any], List[Any], Facts) -> Optional[TrainingRun]
    """Return what a run trains; None: it makes no step."""
    needed = ancestors([*targets, *(tensor.op for tensor in fetches)])
    updates = [each for each in needed.values() if _UPDATES.search(each.type)]
    gradients = [each for each in facts.gradients(graph) if not each.names.isdisjoint(needed)]
    step = global_step(graph)
    counts = step is not None and any(
        each.type in _COUNTS and each.inputs[0].op.name == step.op.name for each in updates
    )
    if not updates or not (gradients or (counts and not facts.gradients(graph))):
        return None
    if counts:
        facts.note_counting(graph)
    elif facts.counts_steps(graph):
        return None
    loss = graph.get_tensor_by_name(gradients[0].loss) if gradients else None
    inputs = ancestors([loss.op]) if loss is not None else needed
    is_fed = any(each.type in ("Placeholder", "PlaceholderV2") for each in inputs.values())
    batch, rows = _batch(each for each in inputs.values() if _INPUTS.search(each.type))
    read = None if step is None else _value(step)
    return TrainingRun(graph, facts, read, loss, None if is_fed else rows, batch, is_fed)


def global_step(graph):
    # type: (Any) -> Any
    """Return the variable that counts steps, as ``tf.train.get_global_step`` finds it; None: there is none."""
    marked = graph.get_collection(_STEP)
    if marked:
        return marked[0]
    return next((each for each in graph.get_collection("variables") if each.op.name == _STEP), None)


def _value(variable):
    # type: (Any) -> Any
    """Return the tensor that a variable's own graph reads it by; nothing is added to the graph for it."""
    for name in ("_graph_element", "_snapshot", "_variable"):
        found = getattr(variable, name, None)
        if found is not None:
            return found
    return None


def _batch(inputs):
    # type: (Iterable[Any]) -> Tuple[Optional[int], Any]
    """Return how many examples a batch has, where shapes say it; else a tensor that has a row for each."""
    outputs = [tensor for each in inputs for tensor in each.outputs if tensor.shape.ndims]
    sizes = [tensor.shape.as_list()[0] for tensor in outputs]
    known = [size for size in sizes if size]
    if known:
        return max(known), None
    smallest = sorted(outputs, key=lambda each: (each.dtype.name == "string", each.shape.ndims, each.name))
    return None, smallest[0] if smallest else None
