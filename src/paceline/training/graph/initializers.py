"""Initial values of parameters and their slots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paceline.training.lazy_tensorflow import tf


def filled(value: float) -> Callable[..., Any]:
    """Return an initializer that gives a tensor of the requested shape one value everywhere.

    TensorFlow folds even `tf.fill` into a constant, and keeps the constant in memory beside the variable as
    long as the session lives. It does not fold `Empty`
    (tensorflow/core/grappler/optimizers/constant_folding.cc).
    """
    return lambda shape, dtype, partition_info=None: (
        tf.raw_ops.Empty(shape=shape, dtype=dtype, init=True) + tf.constant(value, dtype)
    )
