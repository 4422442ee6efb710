"""TensorFlow, imported when something of it is first used, and without Keras.

    from paceline.training.lazy_tensorflow import tf, tf1

All of this package takes TensorFlow from here. So a script can describe its model and its data, and a
parameter server can start, without it.

`import tensorflow` ends with an import of `keras.src.optimizers`, only for what that registers. It drags in
all of Keras, pandas, and Matplotlib and IPython where they are installed. A failure of that import is passed
over, so it is made to fail. `tf.keras` imports Keras when it is first used.

An import makes objects by the hundred thousand and drops few of them, so Python looks through all of them for
garbage again and again. It does not look while TensorFlow is imported. Both together spare a quarter of the
CPU time of the import.
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
    """Stands for a module until something of it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(imported(self._name), attribute)
        setattr(self, attribute, value)
        return value


def imported(name: str = "tensorflow") -> Any:
    """Imports TensorFlow, or a module of it; Keras only if that was there before."""
    if "tensorflow" in sys.modules:
        return importlib.import_module(name)
    absent = [each for each in _EAGER if each not in sys.modules]
    # A module that is None in `sys.modules` cannot be imported (importlib's documentation).
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None is allowed there
    try:
        with _no_collections():
            return importlib.import_module(name)
    finally:
        for each in absent:
            sys.modules.pop(each, None)


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """Has Python look for no garbage meanwhile."""
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
