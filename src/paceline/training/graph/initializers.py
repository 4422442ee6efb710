"""First values of parameters and of their slots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paceline.training.lazy_tensorflow import tf


def filled(value: float) -> Callable[..., Any]:
    """An initializer with one value everywhere.

    TensorFlow makes a constant even of `tf.fill`, and keeps it in memory beside the variable as long as the
    session lives; `Empty` it does not fold (tensorflow/core/grappler/optimizers/constant_folding.cc).
    """
    return lambda shape, dtype, partition_info=None: (
        tf.raw_ops.Empty(shape=shape, dtype=dtype, init=True) + tf.constant(value, dtype)
    )
