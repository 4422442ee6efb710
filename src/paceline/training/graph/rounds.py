"""Synchronous steps with backup workers: a global step takes the gradients of all trainers but the slowest.

Source: Chen et al. 2016, "Revisiting distributed synchronous SGD". Each trainer stages its gradients, with
their ids, on every parameter server under a key, and then notes the key on the first server. When enough keys
of the step are noted, the chief makes every server apply the mean of the same trainers' gradients and drop
all other staged gradients, and then advances the global step. The other trainers wait for the new global
step.

The chief alone decides which gradients a step takes, so all servers use the same gradients, and a gradient
counts as dropped exactly when it was not used. When a trainer is lost, the others go on as long as the backup
workers make up for it; otherwise they wait until it is back. Without the chief they wait. A chief that comes
back begins a new epoch: the servers drop what is staged, and the trainers repeat their step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.training import declarations, parameters
from paceline.training.graph import learning_rates, steps
from paceline.training.lazy_tensorflow import tf, tf1

_TRAINER_BITS, _EPOCH_BITS = 12, 20


@dataclass(frozen=True)
class GradientKey:
    """The trainer, step and epoch of staged gradients; the graph holds it as a number (int64)."""

    step: int
    trainer: int
    epoch: int

    @property
    def number(self) -> int:
        """The key as one number."""
        return (self.step << _TRAINER_BITS | self.trainer) << _EPOCH_BITS | self.epoch

    @staticmethod
    def of(number: int) -> GradientKey:
        """Return the key that a number stands for."""
        step_and_trainer, epoch = divmod(number, 1 << _EPOCH_BITS)
        return GradientKey(*divmod(step_and_trainer, 1 << _TRAINER_BITS), epoch)


@dataclass(frozen=True)
class SynchronousRounds:
    """The operations of synchronous steps in a trainer's graph.

    Attributes:
        staged: for each server, the operation that stages this trainer's gradients under the server's key.
        keys: for each server, the placeholder () of that key; all are fed the same number.
        key: the placeholder () of the key to note.
        arrived: notes `key` and returns the state, as `state` does.
        state: (3,): the global step, the epoch, and this trainer's key that was used last.
        noted: (trainers,): the last key of each trainer.
        chosen: placeholders (gradients,) of the keys that make up a step: the first is for the first server's
            list of used keys, the others are for the staged gradients of each server. All are fed the same
            numbers.
        applied: applies the gradients of `chosen` and returns the global step ().
        renewed: begins an epoch: it drops all staged gradients and all keys.
        gradients: the number of trainers' gradients in a step.
    """

    staged: tuple[Any, ...]
    keys: tuple[Any, ...]
    key: Any
    arrived: Any
    state: Any
    noted: Any
    chosen: tuple[Any, ...]
    applied: Any
    renewed: Any
    gradients: int


def create(
    pushed: Sequence[steps.Pushed],
    step: Any,
    rate: learning_rates.LearningRates,
    parts: Mapping[str, declarations.Part],
    *,
    gradients: int,
    trainers: int,
    trainer: int,
    device: parameters.Device,
) -> SynchronousRounds:
    """Add synchronous steps to the graph of a trainer, for the gradients that it pushed.

    Each step takes the gradients of `gradients` trainers.
    """
    stages = []
    for server, group in steps.by_server(pushed).items():
        with tf1.device(device(server)):
            stages.append(_stage(server, group, gradients, rate, parts))
    with tf1.device(device(0)):
        noted, used = (_keys(name, trainers) for name in ("keys_noted", "keys_used"))
        epoch = tf1.get_variable(
            "epoch", initializer=_now, shape=(), dtype=tf.int64, trainable=False, use_resource=True
        )
        key = tf1.placeholder(tf.int64, [])
        with tf1.control_dependencies([tf1.scatter_update(noted, trainer, key)]):
            arrived = _state(step, epoch, used, trainer)
        mine = tf1.placeholder(tf.int64, [gradients])
        finished = [stage.applied for stage in stages]
        with tf1.control_dependencies(finished):
            whose = tf.bitwise.right_shift(mine, tf.constant(_EPOCH_BITS, tf.int64))
            whose = tf.bitwise.bitwise_and(whose, tf.constant((1 << _TRAINER_BITS) - 1, tf.int64))
            recorded = tf1.scatter_update(used, whose, mine)
        with tf1.control_dependencies([recorded]):
            applied = step.assign_add(1, read_value=True)
        cleared = [stage.cleared for stage in stages]
        with tf1.control_dependencies([*cleared, noted.initializer, used.initializer]):
            renewed = epoch.assign(_now()).op
        return SynchronousRounds(
            staged=tuple(stage.staged for stage in stages),
            keys=tuple(stage.key for stage in stages),
            key=key,
            arrived=arrived,
            state=_state(step, epoch, used, trainer),
            noted=noted.read_value(),
            chosen=(mine, *(stage.chosen for stage in stages)),
            applied=applied,
            renewed=renewed,
            gradients=gradients,
        )


@dataclass(frozen=True)
class _Stage:
    """The operations on the gradients of one server: stage them, apply the chosen ones, drop them all."""

    key: Any
    staged: Any
    chosen: Any
    applied: Any
    cleared: Any


def _stage(
    server: int,
    pushed: Sequence[steps.Pushed],
    count: int,
    rate: learning_rates.LearningRates,
    parts: Mapping[str, declarations.Part],
) -> _Stage:
    tensors = {
        id(tensor): tensor for each in pushed for tensor in (each.ids, each.gradient) if tensor is not None
    }
    place = {key: number for number, key in enumerate(tensors)}
    values = list(tensors.values())
    store: dict[str, Any] = {"dtypes": [each.dtype for each in values], "shared_name": f"gradients/{server}"}
    indices = tf.range(len(values))
    key, chosen = tf1.placeholder(tf.int64, []), tf1.placeholder(tf.int64, [count])
    taken = [tf.raw_ops.MapUnstage(key=chosen[number], indices=indices, **store) for number in range(count)]
    means = [_mean(each, taken, place) for each in pushed]
    updates = steps.apply(means, rate.next(server, means[0].gradient), parts)
    with tf1.control_dependencies(updates):
        applied = tf.raw_ops.MapClear(**store)
    return _Stage(
        key=key,
        staged=tf.raw_ops.MapStage(key=key, indices=indices, values=values, **store),
        chosen=chosen,
        applied=applied,
        cleared=tf.raw_ops.MapClear(**store),
    )


def _mean(pushed: steps.Pushed, taken: Sequence[Sequence[Any]], place: Mapping[int, int]) -> steps.Pushed:
    """Return the mean of several trainers' gradients.

    It has the shape of the pushed gradient, or (distinct ids, ...) for rows. A row that a trainer does not
    use counts as zero for that trainer.
    """
    gradients = [group[place[id(pushed.gradient)]] / len(taken) for group in taken]
    for each in gradients:
        each.set_shape(pushed.gradient.shape)
    if pushed.ids is None:
        return steps.Pushed(pushed.parameter, None, tf.add_n(gradients))
    every = tf.concat([tf.reshape(group[place[id(pushed.ids)]], [-1]) for group in taken], axis=0)
    ids, gradient = steps.summed(every, tf.concat(gradients, axis=0))
    return steps.Pushed(pushed.parameter, ids, gradient)


def _keys(name: str, trainers: int) -> Any:
    return tf1.get_variable(
        name, initializer=tf.constant(-1, tf.int64, [trainers]), trainable=False, use_resource=True
    )


def _state(step: Any, epoch: Any, used: Any, trainer: int) -> Any:
    now = step.read_value()
    with tf1.control_dependencies([now]):  # a step's used keys are written before the step is counted
        return tf.stack([now, epoch.read_value(), used.read_value()[trainer]])


def _now(*_: Any, **__: Any) -> Any:
    """Return a number that tells epochs apart: the time in milliseconds, cut to the bits of an epoch."""
    return tf.cast(tf.timestamp() * 1000, tf.int64) % (1 << _EPOCH_BITS)
