"""Tables of vectors, one row for each id of a categorical feature.

Separate: a table and a lookup for each feature, as in TensorFlow's documentation. Fused: one table for all,
each feature's ids shifted by the rows of those before it, and every distinct id looked up once. Both
compute the same; the fused one costs one operation and one transfer for each shard instead of one for each
feature, and sends the row of a frequent id once for each batch instead of once for each occurrence.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf1

from paceline.training import features


@dataclass(frozen=True)
class Tables:
    """How the tables of one part of a model are made: vectors of `dimension` floats, initial values,
    shards.
    """

    name: str
    dimension: int
    initializer: Any
    partitioner: Any = None
    fused: bool = True

    def lookup(self, ids: Any, columns: Sequence[features.Categorical]) -> Any:
        """The vectors of a batch.

        Args:
            ids: int32 tensor (examples, features), each column counting from 0.
            columns: the feature of each column of `ids`.

        Returns:
            A float tensor (examples, features, dimension).
        """
        if self.fused:
            return self._fused(ids, columns)
        looked_up = [
            tf1.nn.embedding_lookup(
                self._table(column.name, column.rows), ids[:, i], partition_strategy="div"
            )
            for i, column in enumerate(columns)
        ]
        return tf1.stack(looked_up, axis=1)

    def _fused(self, ids: Any, columns: Sequence[features.Categorical]) -> Any:
        table = self._table("all", sum(column.rows for column in columns))
        shifted = ids + tf1.constant(offsets(columns), dtype=tf1.int32)
        distinct, position = tf1.unique(tf1.reshape(shifted, [-1]))
        vectors = tf1.nn.embedding_lookup(table, distinct, partition_strategy="div")
        return tf1.reshape(tf1.gather(vectors, position), [-1, len(columns), self.dimension])

    def _table(self, name: str, rows: int) -> Any:
        return tf1.get_variable(
            f"{self.name}/{name}",
            shape=[rows, self.dimension],
            initializer=self.initializer,
            partitioner=self.partitioner,
        )


def offsets(columns: Sequence[features.Categorical]) -> list[int]:
    """The first row of each feature in a fused table."""
    return list(itertools.accumulate((column.rows for column in columns), initial=0))[:-1]
