"""Wide & Deep (Cheng et al. 2016, arXiv 1606.07792): a linear model of crosses beside a network of
embeddings.

logit = bias + sum of the weights of the wide ids + network(numbers, vectors of the deep ids). The wide part
memorises, the deep part generalises; each has its own optimizer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf1

from paceline.training import embeddings, features, settings


@dataclass(frozen=True)
class Outputs:
    """What a model computes for a batch, and which variables each optimizer updates."""

    logits: Any
    wide_variables: tuple[Any, ...]
    deep_variables: tuple[Any, ...]


@dataclass(frozen=True)
class WideAndDeep:
    """The model for a set of features; widths, dimension and fusing come from the settings.

    `embedding_deviation` is the standard deviation of the initial vectors.
    """

    encoder: features.FeatureSet
    embedding_deviation: float = 0.05

    def build(self, batch: features.Examples, chosen: settings.Settings, partitioner: Any) -> Outputs:
        """Adds the model to the current graph.

        Args:
            batch: placeholders in the shapes of `features.Examples`.
            chosen: the settings.
            partitioner: cuts the tables, or None.

        Returns:
            Logits of shape (examples,) and the variables.
        """
        with tf1.variable_scope("wide"):
            wide = self._wide(batch, chosen, partitioner)
        with tf1.variable_scope("deep"):
            deep = self._deep(batch, chosen, partitioner)
        return Outputs(
            logits=wide + deep,
            wide_variables=tuple(tf1.trainable_variables("wide")),
            deep_variables=tuple(tf1.trainable_variables("deep")),
        )

    def _wide(self, batch: features.Examples, chosen: settings.Settings, partitioner: Any) -> Any:
        bias = tf1.get_variable("bias", shape=[], initializer=tf1.zeros_initializer())
        if not self.encoder.wide:
            return bias
        tables = embeddings.Tables("weights", 1, tf1.zeros_initializer(), partitioner, chosen.fused_tables)
        return bias + tf1.reduce_sum(tables.lookup(batch.wide_ids, self.encoder.wide), axis=[1, 2])

    def _deep(self, batch: features.Examples, chosen: settings.Settings, partitioner: Any) -> Any:
        layers = [batch.numeric]
        width = len(self.encoder.numeric)
        if self.encoder.deep:
            initializer = tf1.truncated_normal_initializer(stddev=self.embedding_deviation)
            dimension = chosen.embedding_dimension
            tables = embeddings.Tables("vectors", dimension, initializer, partitioner, chosen.fused_tables)
            width_of_vectors = len(self.encoder.deep) * dimension
            layers.append(
                tf1.reshape(tables.lookup(batch.deep_ids, self.encoder.deep), [-1, width_of_vectors])
            )
            width += width_of_vectors
        hidden = tf1.concat(layers, axis=1)
        for i, units in enumerate(chosen.hidden_units):
            hidden = tf1.nn.relu(_dense(f"layer{i}", hidden, width, units))
            width = units
        return tf1.squeeze(_dense("logit", hidden, width, 1), axis=1)


def _dense(name: str, inputs: Any, width: int, units: int) -> Any:
    with tf1.variable_scope(name):
        kernel = tf1.get_variable(
            "kernel", shape=[width, units], initializer=tf1.glorot_uniform_initializer()
        )
        bias = tf1.get_variable("bias", shape=[units], initializer=tf1.zeros_initializer())
    return tf1.matmul(inputs, kernel) + bias
