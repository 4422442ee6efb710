"""Atomic checkpoints of all parameters and the global step, written by the chief alone.

The saver gathers the variables at the chief, so only the chief needs to see the folder. It writes to
temporary names, renames, and then replaces the file `checkpoint` that names the newest: a chief that is
killed half-way leaves the one before in force. Older ones are removed after that, and what a killed chief
left behind at the next start.

A checkpoint holds each variable whole, so TensorFlow reads it back whatever the shards and the number of
parameter servers then are. Only where rows are stored in another order (`row_layouts`) they are put in order
here, in pieces.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from paceline.model.row_layouts import RowLayout, RowOrder
from paceline.training import errors, parameters

_log = logging.getLogger(__name__)
_NAME = "model.ckpt"
_PIECE_BYTES = 64 * 2**20  # a message to a parameter server may have 2 GiB


@dataclass(frozen=True)
class Contents:
    """What a checkpoint holds: parameters and the global step, with TensorFlow's saver of them.

    `renewed` sets what is not saved, after a restore.
    """

    parameters: tuple[parameters.Parameter, ...]
    step: Any
    saver: Any
    renewed: Any


def contents(
    created: Sequence[parameters.Parameter], step: Any, keep: int, renewed: Sequence[Any] = ()
) -> Contents:
    """Adds to the graph what saves and restores these parameters; `renewed` are operations of a restore."""
    saved = [variable for parameter in created for variable in parameter.saved.values()]
    return Contents(
        parameters=tuple(created),
        step=step,
        saver=tf1.train.Saver([*saved, step], max_to_keep=keep, save_relative_paths=True),
        renewed=tf.group(*renewed),
    )


class Checkpoints:
    """The checkpoints in a folder (or none, when the folder is None: then nothing is saved or restored)."""

    def __init__(self, directory: str | None, contents: Contents, every_seconds: float) -> None:
        self._directory = directory
        self._contents = contents
        self._every_seconds = every_seconds
        self._saved_at = time.monotonic()
        self._saved_step: int | None = None

    def prepare(self) -> None:
        """Makes the folder, removes half-written files of an earlier chief and takes over its finished
        ones.
        """
        if self._directory is None:
            _log.info("no checkpoint folder is given (PACELINE_CHECKPOINT_DIR): nothing will be saved")
            return
        tf.io.gfile.makedirs(self._directory)
        for name in tf.io.gfile.listdir(self._directory):
            if name.startswith(_NAME) and ".tempstate" in name:
                tf.io.gfile.remove(f"{self._directory}/{name}")
        state = tf.train.get_checkpoint_state(self._directory)
        if state is not None:
            self._contents.saver.recover_last_checkpoints(state.all_model_checkpoint_paths)

    def latest(self) -> str | None:
        """The newest whole checkpoint, or None."""
        newest: str | None = tf.train.latest_checkpoint(self._directory) if self._directory else None
        return newest

    def restore(self, session: Any, checkpoint: str | None = None) -> str | None:
        """Gives all variables the values of a checkpoint, the newest if none is given; None when there is
        none.

        Raises:
            CheckpointError: it belongs to another model, or cannot be read.
        """
        checkpoint = checkpoint or self.latest()
        if checkpoint is None:
            return None
        try:
            self._restore(session, checkpoint)
        except (tf.errors.NotFoundError, tf.errors.InvalidArgumentError, tf.errors.DataLossError) as error:
            raise _unfit(checkpoint, str(error).strip().splitlines()[0]) from error
        return checkpoint

    def _restore(self, session: Any, checkpoint: str) -> None:
        reader = tf.train.load_checkpoint(checkpoint)
        stored = _stored(self._contents.parameters, reader.get_variable_to_shape_map(), checkpoint)
        with session.graph.as_default():
            if all(
                name == parameters.stored_name(parameter.shard, slot)
                for (parameter, slot), name in stored.items()
            ):
                self._contents.saver.restore(session, checkpoint)
            else:
                _log.info("%s has its rows in another order: putting them in this one", checkpoint)
                _reorder(session, reader, stored)
                self._contents.step.load(reader.get_tensor(self._contents.step.op.name), session)
            session.run(self._contents.renewed)

    def save_if_due(self, session: Any, step: int) -> None:
        """Saves when the last time is long enough ago."""
        if time.monotonic() - self._saved_at >= self._every_seconds:
            self.save(session, step)

    def save(self, session: Any, step: int) -> None:
        """Saves now, unless this very step was saved last."""
        if self._directory is None or step == self._saved_step:
            return
        start = time.monotonic()
        with session.graph.as_default():  # outside of a graph the saver takes the variables for eager ones
            self._contents.saver.save(
                session, f"{self._directory}/{_NAME}", global_step=step, write_meta_graph=False
            )
        self._saved_at, self._saved_step = time.monotonic(), step
        _log.info("saved step %d in %.1f s", step, self._saved_at - start)


def step_of(checkpoint: str) -> int:
    """The global step in the name of a checkpoint."""
    return int(checkpoint.rpartition("-")[2])


Stored = Mapping[tuple[parameters.Parameter, str], str]


def _stored(
    every: Sequence[parameters.Parameter], shapes: Mapping[str, Sequence[int]], checkpoint: str
) -> Stored:
    """The name in the checkpoint of each shard's variable and slots, in whatever order its rows are there.

    TensorFlow itself would let a variable take on another shape.
    """
    found = {}
    for parameter in every:
        variable = parameter.shard.variable
        for slot in parameter.saved:
            own, plain = parameters.stored_name(parameter.shard, slot), variable.name + slot
            orders = [name for name in shapes if name == plain or _order(plain, name) is not None]
            if not orders:
                raise _unfit(checkpoint, f"it has no variable {plain!r}")
            name = own if own in orders else orders[0]
            if tuple(shapes[name]) != variable.shape:
                there, here = list(shapes[name]), list(variable.shape)
                raise _unfit(checkpoint, f"its {plain!r} has the shape {there}, the model's has {here}")
            found[parameter, slot] = name
    return found


def _order(plain: str, name: str) -> tuple[RowOrder, int] | None:
    """The order of rows and the number of shards that a stored name tells; None for another variable's."""
    order, _, shards = name.removeprefix(f"{plain}/").partition("-")
    if (
        name.startswith(f"{plain}/")
        and order in (RowOrder.HASHED, RowOrder.STRIDED)
        and (shards or "1").isdigit()
    ):
        return RowOrder(order), int(shards or 1)
    return None


def _reorder(session: Any, reader: Any, stored: Stored) -> None:
    name, values = "", np.empty(0)
    for (parameter, slot), found in sorted(stored.items(), key=lambda item: item[1]):
        variable, shard = parameter.saved[slot], parameter.shard
        if found != name:  # all shards of a variable come from one tensor, which may be large
            name, values = found, reader.get_tensor(found)
        if not shard.variable.shape:
            variable.load(values, session)
            continue
        order, shards = _order(shard.variable.name + slot, name) or (RowOrder.CONTIGUOUS, 1)
        there = RowLayout(rows=shard.layout.rows, shards=shards, order=order)
        ids, piece = tf1.placeholder(tf.int32, [None]), tf1.placeholder(tf.float32, [None, *values.shape[1:]])
        update = tf1.scatter_update(variable, ids, piece)
        if not session.run(variable.is_initialized()):
            session.run(variable.initializer)
        step = max(1, _PIECE_BYTES // max(1, values[:1].nbytes))
        for first in range(0, shard.rows, step):
            places = np.arange(first, min(first + step, shard.rows), dtype=np.int64)
            from_shard, from_place = there.locate(shard.layout.row(shard.index, places))
            session.run(update, {ids: places, piece: values[there.start(from_shard) + from_place]})


def _unfit(checkpoint: str, why: str) -> errors.CheckpointError:
    return errors.CheckpointError(
        f"{checkpoint} does not fit this model: {why}; "
        "use another checkpoint folder, or delete this one to start anew"
    )
