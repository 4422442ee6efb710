"""DeepFM (Guo et al. 2017, arXiv 1703.04247): a factorization machine and a network over the same vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paceline.training import blocks
from paceline.training.features import FeatureSet
from paceline.training.lazy_tensorflow import tf


@dataclass(frozen=True)
class DeepFM:
    """The model; widths and dimension come from the settings.

    logit = bias + sum of the weights of the ids + sum over pairs of features of the product of their vectors
    + network(numbers, vectors).
    """

    features: FeatureSet

    def logits(self, parts: blocks.Blocks) -> Any:
        """Return logits of shape (examples,)."""
        columns = self.features.categorical
        weights = parts.embed("wide/weights", columns, 1, deviation=0.0, part="wide")
        vectors = parts.embed("deep/vectors", columns)
        hidden = parts.tower("deep/layer", tf.concat([parts.numeric, blocks.flat(vectors)], axis=1))
        network = tf.squeeze(parts.dense("deep/logit", hidden, 1), axis=1)
        return (
            parts.weight("wide/bias", (), part="wide")
            + tf.reduce_sum(weights, [1, 2])
            + pairs(vectors)
            + network
        )


def pairs(vectors: Any) -> Any:
    """Return the sum of the products of all pairs of vectors (examples, features, dimension): (examples,).

    By Rendle 2010, equation 5: half of the square of the sum minus the sum of the squares, summed over the
    dimension.
    """
    squared_sum = tf.square(tf.reduce_sum(vectors, axis=1))
    return 0.5 * tf.reduce_sum(squared_sum - tf.reduce_sum(tf.square(vectors), axis=1), axis=1)
