"""Wide & Deep (Cheng et al. 2016, arXiv 1606.07792): a linear model beside a network of embeddings.

logit = bias + sum of the weights of the wide ids + network(numbers, vectors of the deep ids). The wide part,
often of crosses, memorises; the deep part generalises. Each part has its own optimizer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paceline.training import blocks
from paceline.training.features import Categorical, FeatureSet
from paceline.training.lazy_tensorflow import tf


@dataclass(frozen=True)
class WideAndDeep:
    """The model; widths and dimension come from the settings.

    Every categorical feature may be `deep` (a vector of the network), `wide` (a weight) or both. None means
    all features.
    """

    features: FeatureSet
    deep: tuple[Categorical, ...] | None = None
    wide: tuple[Categorical, ...] | None = None

    def logits(self, parts: blocks.Blocks) -> Any:
        """Return logits of shape (examples,)."""
        return self._wide(parts) + self._deep(parts)

    def _wide(self, parts: blocks.Blocks) -> Any:
        columns = self.features.categorical if self.wide is None else self.wide
        bias = parts.weight("wide/bias", (), part="wide")
        if not columns:
            return bias
        weights = parts.embed("wide/weights", columns, 1, deviation=0.0, part="wide")
        return bias + tf.reduce_sum(weights, axis=[1, 2])

    def _deep(self, parts: blocks.Blocks) -> Any:
        columns = self.features.categorical if self.deep is None else self.deep
        inputs = parts.numeric
        if columns:
            inputs = tf.concat([inputs, blocks.flat(parts.embed("deep/vectors", columns))], axis=1)
        hidden = parts.tower("deep/layer", inputs)
        return tf.squeeze(parts.dense("deep/logit", hidden, 1), axis=1)
