"""How embedding tables are cut into shards along their rows.

The cut is TensorFlow's own (contiguous row ranges, `div` in its words), so a checkpoint holds the whole
table and can be read back under any other partitioning.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf1

from paceline.training import settings


def partitioner(partitioning: settings.Partitioning, parameter_servers: int) -> Any:
    """A partitioner for `tf.compat.v1.get_variable`, or None when tables stay whole."""
    shards = partitioning.shards or parameter_servers
    if partitioning.strategy == "none" or shards <= 1:
        return None
    if partitioning.strategy == "fixed":
        return tf1.fixed_size_partitioner(shards)
    return tf1.min_max_variable_partitioner(
        max_partitions=shards, min_slice_size=partitioning.min_shard_bytes
    )
