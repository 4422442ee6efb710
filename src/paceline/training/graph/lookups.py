"""From the ids of a batch to rows of shards, and back: find the shards, look rows up, join them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paceline.model.variables.row_layouts import RowLayout, RowOrder
from paceline.training import declarations, places
from paceline.training.graph import combiners
from paceline.training.lazy_tensorflow import tf, tf1


@dataclass(frozen=True)
class Ids:
    """The ids of a table's features in a batch.

    Attributes:
        rows: row numbers (rows,), int32; each occurs once if they are distinct.
        position: (filled places,): the index in `rows` of each place that holds a value. None if `rows` has a
            row for each of these places in order.
        groups: which places belong to one vector; None if each place is a vector by itself.
    """

    table: declarations.Table
    rows: Any
    position: Any
    groups: combiners.Groups | None = None

    def vectors(self, values: Any) -> Any:
        """Return the values by example: (examples, vectors of the table's features, dimension).

        `values` are (rows, dimension).
        """
        if self.groups is not None:
            values = self.groups.together(values, self.position)
        elif self.position is not None:
            values = tf.gather(values, self.position)
        count = places.width(self.table.columns, places.vectors)
        return tf.reshape(values, [-1, count, int(values.shape[-1])])


def ids(table: declarations.Table, columns: Any, *, distinct: bool) -> Ids:
    """Return the ids of a batch in a table.

    `columns` is (examples, places of the table's features). Its ids count from 0 in each feature; -1 marks a
    place without a value. With `distinct`, the row of a frequent id is sent once for each batch instead of
    once for each occurrence, and so is the sum of its gradients.
    """
    rows = tf.reshape(columns + tf.constant(table.offsets, dtype=tf.int32), [-1])
    groups = combiners.groups(table.columns, columns)
    if groups is not None:
        rows = tf.gather(rows, groups.places)
    if not distinct:
        return Ids(table, rows, None, groups)
    found, position = tf.unique(rows)
    return Ids(table, found, position, groups)


@dataclass(frozen=True)
class Located:
    """Row numbers (rows,) by the shard that holds them.

    `shard` (rows,) is the shard of each row number; with only one shard it is None and `origin` is empty.
    `local[k]` are the local ids in shard k and `origin[k]` their places among the row numbers, both (rows in
    shard k,).
    """

    shard: Any
    local: Sequence[Any]
    origin: Sequence[Any]

    def together(self, values: Sequence[Any]) -> Any:
        """Join values by shard, each (rows in shard, ...), in the order of the row numbers: (rows, ...)."""
        return values[0] if self.shard is None else tf1.dynamic_stitch(list(self.origin), list(values))

    def apart(self, values: Any) -> list[Any]:
        """Split values in the order of the row numbers, (rows, ...), by shard: each (rows in shard, ...)."""
        if self.shard is None:
            return [values]
        parts: list[Any] = tf1.dynamic_partition(values, self.shard, len(self.local))
        return parts


def locate(rows: Any, layout: RowLayout) -> Located:
    """Find the shards of row numbers (rows,)."""
    if layout.shards == 1 and layout.order is not RowOrder.HASHED:
        return Located(None, [rows], [])
    shard, place = (tf.cast(each, tf.int32) for each in layout.locate(tf.cast(rows, tf.int64)))
    if layout.shards == 1:
        return Located(None, [place], [])
    return Located(
        shard,
        tf1.dynamic_partition(place, shard, layout.shards),
        tf1.dynamic_partition(tf.range(tf.size(rows)), shard, layout.shards),
    )
