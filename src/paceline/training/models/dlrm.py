"""DLRM (Naumov et al. 2019, arXiv 1906.00091): products of all pairs of feature vectors.

The numbers together give one of the vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paceline.training import blocks
from paceline.training.features import FeatureSet
from paceline.training.lazy_tensorflow import tf


@dataclass(frozen=True)
class DLRM:
    """The model.

    `bottom` has the widths of the network over the numbers, except for its last layer, which has the
    dimension of the vectors. The network on top has the widths of the settings.
    """

    features: FeatureSet
    bottom: tuple[int, ...] = (64,)

    def logits(self, parts: blocks.Blocks) -> Any:
        """Return logits of shape (examples,)."""
        vectors = parts.embed("deep/vectors", self.features.categorical)
        numbers = parts.tower("bottom/layer", parts.numeric, (*self.bottom, parts.chosen.embedding_dimension))
        products = dots(tf.concat([numbers[:, tf.newaxis], vectors], axis=1))
        hidden = parts.tower("top/layer", tf.concat([numbers, products], axis=1))
        return tf.squeeze(parts.dense("top/logit", hidden, 1), axis=1)


def dots(vectors: Any) -> Any:
    """Return the products of all pairs of different vectors (examples, n, dimension).

    They are (examples, n (n - 1) / 2).
    """
    count = int(vectors.shape[1])
    products = tf.reshape(tf.matmul(vectors, vectors, transpose_b=True), [-1, count * count])
    return tf.gather(products, [i * count + j for i in range(count) for j in range(i)], axis=1)
