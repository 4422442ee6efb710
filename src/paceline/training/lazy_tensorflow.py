"""TensorFlow, imported on first use, and without Keras.

    from paceline.training.lazy_tensorflow import tf, tf1

All of this package takes TensorFlow from here. So without TensorFlow a script can describe its model and its
data, and a parameter server can start.

`import tensorflow` ends with an import of `keras.src.optimizers`, only for what that import registers. It
loads all of Keras, pandas, and Matplotlib and IPython if they are installed. TensorFlow ignores a failure of
that import, so this module makes it fail. `tf.keras` imports Keras on first use.

An import creates hundreds of thousands of objects and frees few of them, so Python's garbage collector scans
all of them again and again. The collector is off while TensorFlow is imported. Both together save a quarter
of the CPU time of the import.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
from collections.abc import Iterator
from typing import Any

_EAGER = ("keras.src.optimizers", "tf_keras.src.optimizers")


class _Lazy:
    """Stands for a module that is imported on first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(imported(self._name), attribute)
        setattr(self, attribute, value)
        return value


def imported(name: str = "tensorflow") -> Any:
    """Import TensorFlow or one of its modules, without Keras unless that is already imported."""
    if "tensorflow" in sys.modules:
        return importlib.import_module(name)
    absent = [each for each in _EAGER if each not in sys.modules]
    # A module whose entry in `sys.modules` is None cannot be imported (importlib's documentation).
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None is allowed there
    try:
        with _no_collections():
            return importlib.import_module(name)
    finally:
        for each in absent:
            sys.modules.pop(each, None)


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """Switch the garbage collector off for a block."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


tf: Any = _Lazy("tensorflow")
tf1: Any = _Lazy("tensorflow.compat.v1")
