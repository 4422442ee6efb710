"""What a graph that trains says of how its script was written; it is looked at once."""

from __future__ import absolute_import

import sys

from . import graphs, models

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, Optional, Set

    from .reporting import Reporter

#: A table with fewer rows is multiplied as fast as it is looked up.
MOST_ROWS = 10000
_NEXT = "IteratorGetNext"
_PREFETCH = "PrefetchDataset"
#: Between ids made one-hot and the multiplication: shapes, types, the sum over several ids of an example.
_KEPT = ("Reshape", "Cast", "Identity", "Squeeze", "Sum", "ExpandDims", "Mul")
_MULTIPLY = ("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")


def note(reporter, graph, needed, facts):
    # type: (Reporter, Any, graphs.Operations, graphs.Facts) -> None
    """Report what is known of a graph.

    Args:
        reporter: takes the facts.
        graph: the graph.
        needed: the operations of a step, by name.
        facts: which gradients were computed in it.
    """
    step = graphs.global_step(graph)
    if step is not None and step.op.device:
        reporter.state("global_step_device", step.op.device)
    prefetched = prefetches(graph, needed)
    if prefetched is not None:
        reporter.state("prefetches", prefetched)
    table = multiplied_table(graph, needed, facts)
    if table is not None:
        reporter.state("one_hot_table", table)


def prefetches(graph, needed):
    # type: (Any, graphs.Operations) -> Optional[bool]
    """Whether batches are made ahead; None: they come from elsewhere, or TensorFlow sees to it by itself."""
    if not any(each.type == _NEXT for each in needed.values()) or _is_injected():
        return None
    return any(kind.startswith(_PREFETCH) for kind in _kinds(graph))


def _is_injected():
    # type: () -> bool
    """Whether this TensorFlow puts the prefetching in where it is missing: it has an option not to."""
    options = sys.modules.get("tensorflow.python.data.ops.options")
    return hasattr(getattr(options, "OptimizationOptions", None), "inject_prefetch")


def _kinds(graph):
    # type: (Any) -> Iterator[str]
    """Yield the types of operations of a graph and of its functions, in which some pipelines are."""
    for operation in graph.get_operations():
        yield operation.type
    for function in getattr(graph, "_functions", {}).values():
        definition = getattr(function, "cached_definition", None) or getattr(function, "definition", None)
        for node in getattr(definition, "node_def", ()):
            yield node.op


def multiplied_table(graph, needed, facts):
    # type: (Any, graphs.Operations, graphs.Facts) -> Optional[str]
    """Return the largest table that ids made one-hot are multiplied with; None: there is none so large.

    Its gradient has all rows, though a batch needs few.
    """
    dense = set()  # type: Set[str]
    for gradients in facts.gradients(graph):
        dense.update(name for name, is_sparse in gradients.sparse.items() if not is_sparse)
    tables = {
        each.op.name: int(each.shape.as_list()[0] or 0)
        for each in graph.get_collection("variables")
        if each.op.name in dense and each.shape.ndims == 2
    }
    found = {}  # type: Dict[str, int]
    for operation in needed.values():
        if operation.type in _MULTIPLY:
            left, right = (tensor.op for tensor in list(operation.inputs)[:2])
            name = _source(right, models.PASSED).name
            if tables.get(name, 0) >= MOST_ROWS and _source(left, _KEPT).type == "OneHot":
                found[name] = tables[name]
    return max(found, key=lambda name: found[name]) if found else None


def _source(operation, passed):
    # type: (Any, Iterable[str]) -> Any
    """Return what an operation gets its first value from, past those that only hand it on."""
    while operation.type in passed and operation.inputs:
        operation = operation.inputs[0].op
    return operation
