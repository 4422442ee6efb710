"""Parts of a TensorFlow graph, cut out at given tensors and inserted into another graph on other tensors."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.training.lazy_tensorflow import tf1


@dataclass(frozen=True)
class Fragment:
    """The operations that compute the tensors `gives` from the tensors `takes`, both by their names."""

    definition: Any
    takes: tuple[str, ...]
    gives: tuple[str, ...]

    def put(self, tensors: Mapping[str, Any], scope: str) -> dict[str, Any]:
        """Add the fragment to the current graph; `tensors` has one for each name that it takes.

        Returns the tensors that it gives, by name.
        """
        given = {name: tensors[name] for name in self.takes}
        found = tf1.import_graph_def(self.definition, given, return_elements=list(self.gives), name=scope)
        return dict(zip(self.gives, found, strict=True))


def cut(graph: Any, wanted: Sequence[Any], ends: Container[str]) -> Fragment:
    """Cut out the operations that compute the wanted tensors, back to the tensors with a name in `ends`.

    The fragment may run on any device. It keeps no control dependencies.
    """
    operation_names: set[str] = set()
    reached: dict[str, None] = {}
    ahead = list(wanted)
    while ahead:
        tensor = ahead.pop()
        if tensor.name in ends:
            reached[tensor.name] = None
        elif tensor.op.name not in operation_names:
            operation_names.add(tensor.op.name)
            ahead += tensor.op.inputs
    names = dict.fromkeys(tensor.name for tensor in wanted)
    return Fragment(_definition(graph, operation_names), tuple(reached), tuple(names))


def _definition(graph: Any, kept: set[str]) -> Any:
    whole = graph.as_graph_def()
    definition = tf1.GraphDef(versions=whole.versions, library=whole.library)
    for node in whole.node:
        if node.name in kept:
            added = definition.node.add()
            added.CopyFrom(node)
            added.device = ""
            added.attr.pop("_class", None)
            del added.input[:]
            added.input.extend(each for each in node.input if not each.startswith("^"))
    return definition
