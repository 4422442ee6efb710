"""The learning rates of a step, computed on the parameter server that applies it, so that none is sent.

A rate that depends on the step needs the step's number, but the global step lives on one server only. So each
server counts the steps that it has applied. The counts are not saved: after a restore they are set from the
global step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.training import declarations, parameters, settings
from paceline.training.graph import optimizers
from paceline.training.lazy_tensorflow import tf, tf1


@dataclass(frozen=True)
class LearningRates:
    """The learning rates of both parts of the model.

    `applied` holds the number of steps () that each server has applied; it is empty if all rates are
    constant.
    """

    chosen: Mapping[declarations.Part, settings.Optimizer]
    applied: Mapping[int, Any]

    def next(self, server: int, after: Any, steps: int = 1) -> list[Mapping[declarations.Part, Any]]:
        """Count steps on a server, after the tensor `after` is computed, and return the rates of each step.

        A rate is a scalar tensor, or a Python number if all rates are constant.
        """
        if not self.applied:
            return [{part: each.learning_rate for part, each in self.chosen.items()}] * steps
        with tf1.device(self.applied[server].device), tf1.control_dependencies([after]):
            last = tf.cast(self.applied[server].assign_add(steps, read_value=True), tf.float64)
            return [
                {part: _rate(each, last - float(to_come)) for part, each in self.chosen.items()}
                for to_come in reversed(range(steps))
            ]

    def renewed(self, step: Any) -> list[Any]:
        """Return the operations that set the counts to the global step ()."""
        return [count.assign(step).op for count in self.applied.values()]


def create(
    chosen: Mapping[declarations.Part, settings.Optimizer], servers: Iterable[int], device: parameters.Device
) -> LearningRates:
    """Create the counts on the servers that hold parameters; none if all rates are constant."""
    if not any(map(_varies, chosen.values())):
        return LearningRates(chosen, {})
    applied = {}
    for server in sorted(set(servers)):
        with tf1.device(device(server)):
            applied[server] = tf1.get_variable(
                f"steps_applied/{server}",
                shape=(),
                dtype=tf.int64,
                initializer=tf1.zeros_initializer(),
                trainable=False,
                use_resource=True,
            )
    return LearningRates(chosen, applied)


def _varies(optimizer: settings.Optimizer) -> bool:
    return not optimizer.schedule.is_constant or optimizers.rule(optimizer).correction is not None


def _rate(optimizer: settings.Optimizer, number: Any) -> Any:
    """Return the rate () of the step with this number (), counted from 1."""
    rate = optimizer.learning_rate * optimizer.schedule.factor(number - 1.0, tf)
    correction = optimizers.rule(optimizer).correction
    if correction is not None:
        rate = rate * correction(number)
    return tf.cast(rate, tf.float32)
