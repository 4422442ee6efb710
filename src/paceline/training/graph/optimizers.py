"""Optimizers that touch only the rows used, over TensorFlow's own kernels, and plain Adam for comparison.

Each optimizer keeps its slots (accumulators) beside the shard that they belong to, under the optimizer's
names for them. Ids come without duplicates and their gradients summed, so a parameter server does not search
for duplicates. The formulas are those of ``tensorflow/core/kernels/training_ops.cc``.

LazyAdam is Adam for the rows that a step uses: the moments of other rows do not decay and those rows do not
move. A rare row therefore keeps the momentum of its last use, where Adam would let it decay. Adam instead
updates every row of the table in each step, which for a large table is the whole cost of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.training import settings
from paceline.training.lazy_tensorflow import tf, tf1

Slots = Mapping[str, Any]
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
_RHO = 0.95
_MOMENTUM = 0.9
_LEARNING_RATE_POWER = -0.5
_INITIAL_ACCUMULATOR = 0.1


@dataclass(frozen=True)
class OptimizerRule:
    """How one kind of optimizer updates a shard.

    Attributes:
        slots: the initial value of each slot, by name; a slot has the shape of the shard.
        whole: `whole(variable, slots, gradient, rate)` updates the whole shard; the gradient has its shape.
        rows: `rows(variable, slots, ids, gradients, rate)` updates the rows with the distinct local ids
            (ids,); the gradients are (ids, ...).
        correction: `correction(number)` is the factor () that the rate must already contain, for the step
            with this number, counted from 1 (float64). None if there is no such factor.
    """

    slots: Mapping[str, float]
    whole: Callable[[Any, Slots, Any, Any], Any]
    rows: Callable[[Any, Slots, Any, Any, Any], Any]
    correction: Callable[[Any], Any] | None = None


def rule(optimizer: settings.Optimizer) -> OptimizerRule:
    """Return the rule that the settings name."""
    return _RULES[optimizer.name]


def _kernels(name: str, arguments: Mapping[str, str], **constants: Any) -> tuple[Any, Any]:
    """Return functions that update a whole shard, and some rows of it, by TensorFlow's kernels of a name.

    `arguments` maps slots to the kernels' names for them; `constants` are the other arguments of the kernels.
    """

    def given(variable: Any, slots: Slots, gradient: Any, rate: Any) -> dict[str, Any]:
        handles = {argument: slots[slot].handle for slot, argument in arguments.items()}
        return {"var": variable.handle, **handles, "lr": rate, "grad": gradient, **constants}

    def whole(variable: Any, slots: Slots, gradient: Any, rate: Any) -> Any:
        kernel = getattr(tf.raw_ops, f"ResourceApply{name}")
        return kernel(**given(variable, slots, gradient, rate))

    def rows(variable: Any, slots: Slots, ids: Any, gradients: Any, rate: Any) -> Any:
        kernel = getattr(tf.raw_ops, f"ResourceSparseApply{name}")
        return kernel(**given(variable, slots, gradients, rate), indices=ids)

    return whole, rows


def _adam(variable: Any, slots: Slots, gradient: Any, rate: Any) -> Any:
    return tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=slots["m"].handle,
        v=slots["v"].handle,
        beta1_power=0.0,  # the rate already contains the correction
        beta2_power=0.0,
        lr=rate,
        beta1=_BETA1,
        beta2=_BETA2,
        epsilon=_EPSILON,
        grad=gradient,
    )


def _adam_rows(variable: Any, slots: Slots, ids: Any, gradients: Any, rate: Any) -> Any:
    """Update every row in each step; source: tensorflow/python/training/adam.py, `_apply_sparse_shared`."""
    first, second = slots["m"], slots["v"]
    decayed = (first.assign(first * _BETA1), second.assign(second * _BETA2))
    with tf1.control_dependencies(decayed):
        added = (
            tf1.scatter_add(first, ids, gradients * (1 - _BETA1)),
            tf1.scatter_add(second, ids, gradients * gradients * (1 - _BETA2)),
        )
    with tf1.control_dependencies(added):
        step = rate * first.read_value() / (tf.sqrt(second.read_value()) + _EPSILON)
        return variable.assign_sub(step).op


def _lazy_adam_rows(variable: Any, slots: Slots, ids: Any, gradients: Any, rate: Any) -> Any:
    first = tf.gather(slots["m"], ids) * _BETA1 + gradients * (1 - _BETA1)
    second = tf.gather(slots["v"], ids) * _BETA2 + gradients * gradients * (1 - _BETA2)
    return tf.group(
        tf1.scatter_update(slots["m"], ids, first),
        tf1.scatter_update(slots["v"], ids, second),
        tf1.scatter_sub(variable, ids, rate * first / (tf.sqrt(second) + _EPSILON)),
    )


def _adam_correction(number: Any) -> Any:
    """Return the factor () for moments that start from zero (Kingma and Ba 2015, end of section 2)."""
    first, second = (1.0 - tf.pow(tf.constant(beta, tf.float64), number) for beta in (_BETA1, _BETA2))
    return tf.sqrt(second) / first


_MOMENTS = {"m": 0.0, "v": 0.0}
_RULES = {
    "adagrad": OptimizerRule(
        {"accumulator": _INITIAL_ACCUMULATOR}, *_kernels("Adagrad", {"accumulator": "accum"})
    ),
    "ftrl": OptimizerRule(
        {"accumulator": _INITIAL_ACCUMULATOR, "linear": 0.0},
        *_kernels(
            "Ftrl",
            {"accumulator": "accum", "linear": "linear"},
            l1=0.0,
            l2=0.0,
            lr_power=_LEARNING_RATE_POWER,
        ),
    ),
    "momentum": OptimizerRule(
        {"momentum": 0.0}, *_kernels("Momentum", {"momentum": "accum"}, momentum=_MOMENTUM)
    ),
    "adadelta": OptimizerRule(
        {"accumulator": 0.0, "update": 0.0},
        *_kernels("Adadelta", {"accumulator": "accum", "update": "accum_update"}, rho=_RHO, epsilon=_EPSILON),
    ),
    "adam": OptimizerRule(_MOMENTS, _adam, _adam_rows, _adam_correction),
    "lazy-adam": OptimizerRule(_MOMENTS, _adam, _lazy_adam_rows, _adam_correction),
}
