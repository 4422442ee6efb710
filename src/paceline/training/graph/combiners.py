"""Several vectors of an example combined into one: their sum, their mean, or sum / sqrt(number of vectors).

The formulas are those of ``tf.nn.safe_embedding_lookup_sparse`` with weights of 1
(tensorflow/python/ops/embedding_ops.py): an example without any value gets zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paceline.training import features, places
from paceline.training.lazy_tensorflow import tf

_DIVISOR_POWERS = {"sum": 0.0, "mean": 1.0, "sqrtn": 0.5, None: 0.0}


@dataclass(frozen=True)
class Groups:
    """The places of a batch's ids that hold a value, grouped by the vector that each contributes to.

    `places` (filled places,) are indices into the flattened ids, ascending. `vector` (filled places,) says to
    which of the `count` vectors of the batch each place contributes. Each sum is divided by its entry of
    `divisors` (count, 1), which is None if all divisors are 1.
    """

    places: Any
    vector: Any
    count: Any
    divisors: Any

    def together(self, values: Any, position: Any) -> Any:
        """Return the combined vectors (count, dimension).

        `values` are (filled places, dimension), or (rows, dimension) if `position` (filled places,) says
        which row each place has.
        """
        if position is None:
            sums = tf.math.unsorted_segment_sum(values, self.vector, self.count)
        else:
            sums = tf.sparse.segment_sum(values, position, self.vector, num_segments=self.count)
        return sums if self.divisors is None else sums / self.divisors


def groups(columns: Sequence[features.Categorical], ids: Any) -> Groups | None:
    """Group the ids (examples, places) of some features; None if each id is a vector by itself."""
    if all(places.combiner(column) is None for column in columns):
        return None
    width = places.width(columns, places.ids)
    owners: list[int] = []
    powers: list[float] = []
    for column in columns:
        own = range(len(powers), len(powers) + places.vectors(column))
        owners += own if len(own) > 1 else [own.start] * places.ids(column)
        powers += [_DIVISOR_POWERS[places.combiner(column)]] * len(own)
    filled = tf.cast(tf.where(tf.reshape(ids, [-1]) >= 0)[:, 0], tf.int32)
    vector = filled // width * len(powers) + tf.gather(tf.constant(owners), filled % width)
    count = tf.shape(ids)[0] * len(powers)
    return Groups(filled, vector, count, _divisors(vector, count, powers))


def _divisors(vector: Any, count: Any, powers: Sequence[float]) -> Any:
    if not any(powers):
        return None
    sizes = tf.math.bincount(vector, minlength=count, dtype=tf.float32)
    sizes = tf.reshape(tf.maximum(sizes, 1.0), [-1, len(powers)])
    return tf.reshape(tf.pow(sizes, tf.constant(powers)), [-1, 1])
