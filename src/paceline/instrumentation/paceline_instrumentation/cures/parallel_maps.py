"""``parallel-map``: a ``tf.data`` pipeline applies a function to several elements at once.

``Dataset.map`` without ``num_parallel_calls`` gets the number from the job file. The order of elements stays,
so values stay. A function with state (random numbers, Python code, a variable that it reads) gives other
values if several calls run at once, so its ``map`` stays unchanged. To find that out, such a function is
traced a second time. The risk is memory: this many elements are processed at once.
"""

from __future__ import absolute_import

import sys

from .. import signatures
from . import prefetches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Optional, Union

    from .notes import Note

NAME, VERSION = "parallel-map", 1
AUTO = "auto"
_ARGUMENT, _ORDERED = "num_parallel_calls", "deterministic"
#: The packages whose own code calls ``map``.
_OWN = ("tensorflow", "tensorflow_core", "keras", "tf_keras")
#: Operations that TensorFlow marks as stateful, but that can only raise.
_HARMLESS = ("Assert",)


class ParallelMaps(object):
    """Gives ``map`` a number of parallel calls.

    Args:
        note: reports which functions were changed.
        calls: the number of calls; ``auto``: TensorFlow chooses it.
    """

    def __init__(self, note, calls):
        # type: (Note, Union[int, str]) -> None
        self._note = note
        self._calls = calls

    def patch(self, module):
        # type: (ModuleType) -> None
        """Wrap the datasets of ``tensorflow.python.data.ops.dataset_ops``."""
        calls = getattr(module, "AUTOTUNE", None) if self._calls == AUTO else self._calls
        if calls is None:
            self._note.refused("this TensorFlow chooses no number by itself")
            return
        package = module.__name__.rpartition(".data.")[0]
        for name in ("DatasetV1", "DatasetV2", "Dataset"):
            dataset = getattr(module, name, None)
            if dataset is not None and not (name == "Dataset" and hasattr(module, "DatasetV2")):
                self._patch_map(dataset, int(calls), package)

    def _patch_map(self, dataset, calls, package):
        # type: (Any, int, str) -> None
        original = vars(dataset)["map"]
        signatures.check(original, ("self", "map_func", _ARGUMENT), NAME)
        has_order = signatures.takes(original, _ORDERED)

        @signatures.wraps(original, NAME)
        def map(own, map_func, *arguments, **named):
            # type: (Any, Any, *Any, **Any) -> Any
            chosen = named.get(_ARGUMENT) is not None or any(each is not None for each in arguments)
            is_set = chosen or named.get(_ORDERED) is not None or named.get("synchronous")
            if is_set or _is_of_tensorflow(map_func):
                return original(own, map_func, *arguments, **named)
            added = dict(named)
            added[_ARGUMENT] = calls
            if has_order:
                added[_ORDERED] = True
            made = original(own, map_func, **added)
            is_the_same = self._note.attempt(self._is_the_same, made, map_func, package)
            return made if is_the_same else original(own, map_func, *arguments, **named)

        dataset.map = map

    def _is_the_same(self, dataset, function, package):
        # type: (Any, Any, str) -> bool
        """Return whether a ``map`` gives the same values with parallel calls; report the answer."""
        function = _of_python(function)
        name = getattr(function, "__name__", type(function).__name__)
        state = _state(prefetches.end(dataset), package)
        if state is not None:
            self._note.refused("%s has a state: %s" % (name, state))
            return False
        self._note.applied(name)
        return True


def _is_of_tensorflow(function):
    # type: (Any) -> bool
    """Return whether a function is part of TensorFlow or Keras, whose own calls of ``map`` stay unchanged."""
    return str(getattr(_of_python(function), "__module__", "")).split(".")[0] in _OWN


def _of_python(function):
    # type: (Any) -> Any
    """Return the script's Python function, also from a ``tf.function``."""
    return getattr(function, "python_function", function)


def _state(dataset, package):
    # type: (Any, str) -> Optional[str]
    """Return a stateful or unknown operation of the pipeline's function; None: it has none."""
    function = dataset._map_func
    function = getattr(function, "function", function)
    definition = function.function_def if hasattr(function, "function_def") else function.definition
    registry = sys.modules[package + ".framework.op_def_registry"]  # type: Any
    for node in definition.node_def:
        known = (
            registry.get(node.op) if hasattr(registry, "get") else registry.get_registered_ops().get(node.op)
        )
        if known is None or (known.is_stateful and node.op not in _HARMLESS):
            return str(node.op)
    return None
