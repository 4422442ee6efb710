"""From the ids of a batch to rows of shards, and back: what lies where, looked up and put together again."""

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

    `rows` are row numbers (int32), each once if they are distinct; `position` says for each example and place
    with a value which of them it is, None when there is a row for each in order. `groups` puts those together
    that are one vector, None when each is one.
    """

    table: declarations.Table
    rows: Any
    position: Any
    groups: combiners.Groups | None = None

    def vectors(self, values: Any) -> Any:
        """The values of the rows by example: (examples, vectors of the table's features, dimension)."""
        if self.groups is not None:
            values = self.groups.together(values, self.position)
        elif self.position is not None:
            values = tf.gather(values, self.position)
        count = places.width(self.table.columns, places.vectors)
        return tf.reshape(values, [-1, count, int(values.shape[-1])])


def ids(table: declarations.Table, columns: Any, *, distinct: bool) -> Ids:
    """The ids of a batch in a table; `columns` (examples, places of its features) count from 0 in each
    feature, -1 is a place without a value.

    Distinct, the row of a frequent id is sent once for each batch instead of once for each occurrence, and so
    is the sum of its gradients.
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
    """Row numbers by the shard that they lie in: `local[k]` in shard k, from the places `origin[k]`."""

    shard: Any
    local: Sequence[Any]
    origin: Sequence[Any]

    def together(self, values: Sequence[Any]) -> Any:
        """Values that came by shard, in the order of the row numbers."""
        return values[0] if self.shard is None else tf1.dynamic_stitch(list(self.origin), list(values))

    def apart(self, values: Any) -> list[Any]:
        """Values in the order of the row numbers, by shard."""
        if self.shard is None:
            return [values]
        parts: list[Any] = tf1.dynamic_partition(values, self.shard, len(self.local))
        return parts


def locate(rows: Any, layout: RowLayout) -> Located:
    """Finds the shards of row numbers."""
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
