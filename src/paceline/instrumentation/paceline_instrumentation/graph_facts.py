"""Derives facts about a script from the graph that it trains; a graph is inspected once."""

from __future__ import absolute_import

import sys

from . import graphs, models

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, Optional, Set

    from .reporting import Reporter

#: For a table with fewer rows, multiplying is as fast as a lookup.
MOST_ROWS = 10000
_NEXT = "IteratorGetNext"
_PREFETCH = "PrefetchDataset"
#: Operations between the one-hot ids and the multiplication: shapes, types, the sum over an example's ids.
_KEPT = ("Reshape", "Cast", "Identity", "Squeeze", "Sum", "ExpandDims", "Mul")
_MULTIPLY = ("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")


def note(reporter, graph, needed, facts):
    # type: (Reporter, Any, graphs.Operations, graphs.Facts) -> None
    """Report what is known of a graph.

    Args:
        reporter: takes the facts.
        graph: the graph.
        needed: the operations of a step, by name.
        facts: the gradients that were computed in the graph.
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
    """Return whether batches are prefetched; None: no iterator makes them, or TensorFlow does so itself."""
    if not any(each.type == _NEXT for each in needed.values()) or _is_injected():
        return None
    return any(kind.startswith(_PREFETCH) for kind in _kinds(graph))


def _is_injected():
    # type: () -> bool
    """Return whether this TensorFlow adds missing prefetching: then it has an option to turn that off."""
    options = sys.modules.get("tensorflow.python.data.ops.options")
    return hasattr(getattr(options, "OptimizationOptions", None), "inject_prefetch")


def _kinds(graph):
    # type: (Any) -> Iterator[str]
    """Yield the operation types of a graph and of its functions, which contain some input pipelines."""
    for operation in graph.get_operations():
        yield operation.type
    for function in getattr(graph, "_functions", {}).values():
        definition = getattr(function, "cached_definition", None) or getattr(function, "definition", None)
        for node in getattr(definition, "node_def", ()):
            yield node.op


def multiplied_table(graph, needed, facts):
    # type: (Any, graphs.Operations, graphs.Facts) -> Optional[str]
    """Return the largest table that one-hot ids are multiplied with; None: there is no table of that size.

    The table's gradient has all rows, although a batch needs few.
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
    """Return the operation that produces an operation's first input, skipping those that only pass it on."""
    while operation.type in passed and operation.inputs:
        operation = operation.inputs[0].op
    return operation
