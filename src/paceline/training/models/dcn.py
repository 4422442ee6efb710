"""DCN-v2 (Wang et al. 2021, arXiv 2008.13535): layers of explicit feature crosses before a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paceline.training import blocks, places
from paceline.training.features import FeatureSet
from paceline.training.lazy_tensorflow import tf


@dataclass(frozen=True)
class DCN:
    """The stacked model: `crosses` cross layers, then a network with the widths of the settings.

    With `rank`, a cross layer's matrix is the product of two thin ones (section 3.2 of the paper).
    """

    features: FeatureSet
    crosses: int = 2
    rank: int | None = 64

    def logits(self, parts: blocks.Blocks) -> Any:
        """Return logits of shape (examples,)."""
        vectors = blocks.flat(parts.embed("deep/vectors", self.features.categorical))
        inputs = tf.concat([parts.numeric, vectors], axis=1)
        crossed = inputs
        for i in range(self.crosses):
            crossed = crossed + inputs * self._cross(parts, f"deep/cross{i}", crossed)
        hidden = parts.tower("deep/layer", crossed)
        return tf.squeeze(parts.dense("deep/logit", hidden, 1), axis=1)

    def _cross(self, parts: blocks.Blocks, name: str, inputs: Any) -> Any:
        """Return W x + b: a cross layer without its product (equation 1 of the paper), (examples, width)."""
        if self.rank is not None:
            inputs, name = parts.dense(f"{name}/thin", inputs, self.rank), f"{name}/wide"
        return parts.dense(name, inputs, int(parts.numeric.shape[1]) + self._width(parts))

    def _width(self, parts: blocks.Blocks) -> int:
        return places.width(self.features.categorical, places.vectors) * parts.chosen.embedding_dimension
