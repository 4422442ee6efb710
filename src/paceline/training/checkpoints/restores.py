"""How the tensors of a checkpoint fit the shards of a graph: by name, by shape, and by the order of rows.

A checkpoint holds each variable whole, so TensorFlow can read it back into any shards on any number of
parameter servers (`savers`). Only if rows are stored in another order (`row_layouts`) does the chief read the
variables one by one and put the rows in their places here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paceline.model.variables.row_layouts import RowLayout, RowOrder
from paceline.training import errors, parameters
from paceline.training.checkpoints import savers
from paceline.training.lazy_tensorflow import tf, tf1

Stored = Mapping[tuple[parameters.Parameter, str], str]


def stored(
    every: Sequence[parameters.Parameter], shapes: Mapping[str, Sequence[int]], checkpoint: str
) -> Stored:
    """Return the name in the checkpoint of each shard's variable and slots, in any order of rows.

    The shapes are checked because TensorFlow itself would let a variable change its shape.

    Raises:
        CheckpointError: the checkpoint lacks a variable, or has it in another shape.
    """
    stored_names = {}
    for parameter in every:
        variable = parameter.shard.variable
        for slot in parameter.saved:
            expected_name, plain = parameters.stored_name(parameter.shard, slot), variable.name + slot
            orders = [name for name in shapes if name == plain or _order(plain, name) is not None]
            if not orders:
                raise unfit(checkpoint, f"it has no variable {plain!r}")
            name = expected_name if expected_name in orders else orders[0]
            if tuple(shapes[name]) != variable.shape:
                there, here = list(shapes[name]), list(variable.shape)
                raise unfit(checkpoint, f"its {plain!r} has the shape {there}, the model's has {here}")
            stored_names[parameter, slot] = name
    return stored_names


def are_in_order(found: Stored) -> bool:
    """Return whether all rows are stored in the order of the shards."""
    return all(
        name == parameters.stored_name(parameter.shard, slot) for (parameter, slot), name in found.items()
    )


def _order(plain: str, name: str) -> tuple[RowOrder, int] | None:
    """Return the row order and number of shards in a stored name; None if it is another variable's name."""
    order, _, shards = name.removeprefix(f"{plain}/").partition("-")
    if (
        name.startswith(f"{plain}/")
        and order in (RowOrder.HASHED, RowOrder.STRIDED)
        and (shards or "1").isdecimal()
    ):
        return RowOrder(order), int(shards or 1)
    return None


def reorder(session: Any, reader: Any, stored: Stored) -> None:
    """Give the variables their stored values, with each row in its place."""
    name, values = "", np.empty(0)
    for (parameter, slot), found in sorted(stored.items(), key=lambda item: item[1]):
        variable, shard = parameter.saved[slot], parameter.shard
        if found != name:  # read once for all shards of a variable, as the tensor may be large
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
        step = max(1, savers.PIECE_BYTES // max(1, values[:1].nbytes))
        for first in range(0, shard.rows, step):
            places = np.arange(first, min(first + step, shard.rows), dtype=np.int64)
            from_shard, from_place = there.locate(shard.layout.row(shard.index, places))
            session.run(update, {ids: places, piece: values[there.start(from_shard) + from_place]})


def unfit(checkpoint: str, why: str) -> errors.CheckpointError:
    """Return the error for a checkpoint that belongs to another model."""
    return errors.CheckpointError(
        f"{checkpoint} does not fit this model: {why}; "
        "use another checkpoint folder, or delete this one to start anew"
    )
