"""The parameters of a model as variables on the parameter servers: one for each shard of the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline.model.variables.row_layouts import RowOrder
from paceline.model.variables.variable_plans import Plan
from paceline.model.variables.variables import Shard
from paceline.training import declarations
from paceline.training.graph import initializers, optimizers
from paceline.training.lazy_tensorflow import tf1

Device = Callable[[int], str]
"""TensorFlow's name of a parameter server by its number; empty in a single process."""


@dataclass(frozen=True, eq=False)
class Parameter:
    """A shard with its slots, on its parameter server."""

    shard: Shard
    variable: Any
    slots: Mapping[str, Any]
    rule: optimizers.OptimizerRule

    @property
    def saved(self) -> Mapping[str, Any]:
        """What a checkpoint holds of it: the variable under "", each slot under "/" and its name."""
        return {"": self.variable, **{f"/{slot}": each for slot, each in self.slots.items()}}

    def update(self, gradient: Any, rate: Any, ids: Any = None) -> Any:
        """Return the operation that applies a gradient.

        The gradient has the shape of the shard, or is (ids, ...) for the rows with the distinct local ids
        (ids,).
        """
        if ids is None:
            return self.rule.whole(self.variable, self.slots, gradient, rate)
        return self.rule.rows(self.variable, self.slots, ids, gradient, rate)


def create(
    plan: Plan,
    initializers: Mapping[str, Any],
    parts: Mapping[str, declarations.Part],
    rules: Mapping[declarations.Part, optimizers.OptimizerRule],
    device: Device,
) -> tuple[Parameter, ...]:
    """Create a variable for each shard of a plan, and its slots beside it.

    `initializers` and `parts` are keyed by the name of the variable. An initializer may be an array of the
    initial values.
    """
    return tuple(
        _create(
            shard, initializers[shard.variable.name], rules[parts[shard.variable.name]], device(shard.server)
        )
        for shard in plan.shards
    )


def _create(shard: Shard, initializer: Any, rule: optimizers.OptimizerRule, device: str) -> Parameter:
    shape = (shard.rows, *shard.variable.shape[1:]) if shard.variable.shape else ()
    if isinstance(initializer, np.ndarray):
        initializer = tf1.constant_initializer(_rows(initializer, shard))
    with tf1.device(device):
        variable = _variable(shard.name, shape, initializer)
        slots = {
            slot: _variable(f"{shard.name}/{slot}", shape, initializers.filled(value), trainable=False)
            for slot, value in rule.slots.items()
        }
    return Parameter(shard, variable, slots, rule)


def _rows(values: Any, shard: Shard) -> Any:
    """Return a shard's rows of the values of a whole variable, in the order in which it stores them."""
    if not shard.variable.shape:
        return values
    return values[shard.layout.row(shard.index, np.arange(shard.rows))]


def _variable(name: str, shape: tuple[int, ...], initializer: Any, *, trainable: bool = True) -> Any:
    return tf1.get_variable(name, shape, initializer=initializer, trainable=trainable, use_resource=True)


def stored_name(shard: Shard, slot: str) -> str:
    """Return the name in a checkpoint of a whole variable in the stored order, or of its slot.

    `slot` is "/" and the name of the slot, or empty for the variable.
    """
    order = shard.layout.stored_as
    return shard.variable.name + slot + ("" if order == RowOrder.CONTIGUOUS else f"/{order}")


def stored_place(shard: Shard, first: int, rows: int) -> str:
    """Return where some rows of a shard lie in the stored variable, in the notation of TensorFlow's kernels.

    It is the whole shape, then start and length in each dimension; empty for the whole variable.
    """
    shape = shard.variable.shape
    if rows == shard.layout.rows:
        return ""
    ranges = [(shard.layout.start(shard.index) + first, rows), *((0, width) for width in shape[1:])]
    return f"{' '.join(map(str, shape))} {':'.join(f'{start},{length}' for start, length in ranges)}"
