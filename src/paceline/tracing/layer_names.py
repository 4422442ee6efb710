"""Which variable a layer means: a profile names layers and their operations, a model names variables.

Keras names a variable after its layer and its role in it: `site/embeddings`, `hidden/kernel`. A profile has
the operation that reads it, within the model: `model/site`, `model/hidden/MatMul`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from paceline.model.variables.variables import Name, Variable, without_part

#: The variable that a layer's operation reads, by the end of its name (`keras/layers/core/dense.py`).
_DONE_WITH = {"MatMul": "kernel", "Tensordot": "kernel", "Conv2D": "kernel", "BiasAdd": "bias", "add": "bias"}


def variables(layers: Iterable[str], known: Sequence[Variable]) -> Mapping[str, Name]:
    """Return the variable and shard of each layer, if it is certain which variable is meant."""
    return {layer: found for layer in set(layers) if (found := _variable(layer, known)) is not None}


def _variable(layer: str, known: Sequence[Variable]) -> Name | None:
    name, part = without_part(layer)
    path = name.split("/")
    kind = _DONE_WITH.get(path[-1])
    if kind is not None:
        del path[-1]
    found = [
        each.name
        for each in known
        if _ends_with(path, each.name.split("/")[:-1])
        and (each.name.rpartition("/")[2] == kind if kind else each.sparse)
    ]
    return (found[0], part) if len(found) == 1 else None


def _ends_with(path: Sequence[str], layer: Sequence[str]) -> bool:
    return bool(layer) and list(path[-len(layer) :]) == list(layer)
