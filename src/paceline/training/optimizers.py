"""Optimizers of `tf.compat.v1.train`, by name.

Adagrad and FTRL touch only the rows of a table that a batch uses. Adam updates its moments, and so every
row, in each step: on a large table that is the whole cost of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf1

from paceline.training import settings

_KINDS = {
    "adagrad": tf1.train.AdagradOptimizer,
    "ftrl": tf1.train.FtrlOptimizer,
    "adam": tf1.train.AdamOptimizer,
}


def make(optimizer: settings.Optimizer) -> Any:
    """The optimizer that the settings name."""
    return _KINDS[optimizer.name](optimizer.learning_rate)


def minimize(loss: Any, parts: Sequence[tuple[settings.Optimizer, Sequence[Any]]], global_step: Any) -> Any:
    """One asynchronous update of all parts of a model.

    Args:
        loss: scalar tensor.
        parts: an optimizer and the variables that it updates; parts without variables are left out.
        global_step: counts one step once every part is updated.

    Returns:
        A tensor: the global step after this update.
    """
    parts = [(optimizer, variables) for optimizer, variables in parts if variables]
    everything = [variable for _, variables in parts for variable in variables]
    gradients = iter(tf1.gradients(loss, everything))
    updates = [
        make(optimizer).apply_gradients([(next(gradients), variable) for variable in variables])
        for optimizer, variables in parts
    ]
    with tf1.control_dependencies(updates):
        return tf1.identity(global_step.assign_add(1, read_value=True))
