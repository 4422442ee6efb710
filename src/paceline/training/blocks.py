"""The blocks that models are made of: weights, embeddings, dense layers.

A model is a class with `features` and `logits(blocks)`. It asks the blocks for its parameters by name and
never sees where they are (`declarations`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from paceline.training import declarations, features, places, settings
from paceline.training.graph import initializers
from paceline.training.lazy_tensorflow import tf, tf1

EMBEDDING_DEVIATION = 0.05


class TrainableModel(Protocol):
    """A model that can be trained: features in, one logit for each example out."""

    @property
    def features(self) -> features.FeatureSet:
        """The features that it reads of an example."""

    def logits(self, parts: Blocks) -> Any:
        """Add the model to the current graph and return logits of shape (examples,)."""


class Blocks:
    """Makes the parts of a model for one batch.

    `numeric` is a float tensor (examples, numbers); `chosen` are the settings of the job file. The functions
    `weight` and `embed` decide where the parameters come from.
    """

    def __init__(
        self,
        numeric: Any,
        chosen: settings.Settings,
        weight: Callable[[declarations.Weight], Any],
        embed: Callable[[declarations.Embedding], Any],
    ) -> None:
        self.numeric = numeric
        self.chosen = chosen
        self._weight = weight
        self._embed = embed

    def weight(
        self, name: str, shape: Sequence[int], *, initializer: Any = None, part: declarations.Part = "deep"
    ) -> Any:
        """Return an array of parameters of this shape.

        The initializer may be an array of the initial values; without an initializer the values start from
        zero.
        """
        return self._weight(
            declarations.Weight(
                name, tuple(shape), initializers.filled(0.0) if initializer is None else initializer, part
            )
        )

    def embed(
        self,
        name: str,
        columns: Sequence[features.Categorical],
        dimension: int | None = None,
        *,
        deviation: float = EMBEDDING_DEVIATION,
        initializer: Any = None,
        part: declarations.Part = "deep",
    ) -> Any:
        """Return vectors of the features' ids: a float tensor (examples, vectors, dimension).

        A feature has one vector, or `length` vectors if it takes several values and has no combiner. The
        dimension is that of the job file if none is given. Without an initializer the vectors start from a
        truncated normal distribution, or from zero if `deviation` is 0.
        """
        if initializer is None:
            normal = tf1.truncated_normal_initializer(stddev=deviation)
            initializer = normal if deviation else initializers.filled(0.0)
        dimension = dimension or self.chosen.embedding_dimension
        return self._embed(declarations.Embedding(name, tuple(columns), dimension, initializer, part))

    def dense(
        self, name: str, inputs: Any, units: int, activation: Callable[[Any], Any] | None = None
    ) -> Any:
        """Return a dense layer over inputs (examples, width): (examples, units), in the type of the inputs.

        The kernel starts from the uniform distribution of Glorot and Bengio 2010, the bias from zero.
        """
        width = int(inputs.shape[-1])
        limit = math.sqrt(6 / (width + units))
        kernel = self.weight(
            f"{name}/kernel", (width, units), initializer=tf1.random_uniform_initializer(-limit, limit)
        )
        bias = self.weight(f"{name}/bias", (units,))
        outputs = tf.matmul(inputs, tf.cast(kernel, inputs.dtype)) + tf.cast(bias, inputs.dtype)
        return activation(outputs) if activation else outputs

    def tower(self, name: str, inputs: Any, units: Sequence[int] | None = None) -> Any:
        """Return dense layers with rectified linear units over inputs (examples, width).

        The result is (examples, last of the widths), float32; the layers are computed in the precision of the
        job file. Their widths are `units`, or those of the job file.
        """
        hidden = tf.cast(inputs, self.chosen.compute_precision)
        for i, width in enumerate(units or self.chosen.hidden_units):
            hidden = self.dense(f"{name}{i}", hidden, width, tf.nn.relu)
        return tf.cast(hidden, tf.float32)


def flat(vectors: Any) -> Any:
    """Return vectors (examples, features, dimension) side by side: (examples, features * dimension)."""
    return tf.reshape(vectors, [-1, int(vectors.shape[1]) * int(vectors.shape[2])])


def declare(model: TrainableModel, chosen: settings.Settings) -> declarations.Declaration:
    """Run the model's code on stand-ins and return the parameters that it asks for."""
    weights: list[declarations.Weight] = []
    embeddings: list[declarations.Embedding] = []

    def weight(asked: declarations.Weight) -> Any:
        weights.append(asked)
        return tf1.placeholder(tf.float32, asked.shape)

    def embed(asked: declarations.Embedding) -> Any:
        embeddings.append(asked)
        vectors = places.width(asked.columns, places.vectors)
        return tf1.placeholder(tf.float32, [None, vectors, asked.dimension])

    with tf1.Graph().as_default():
        numeric = tf1.placeholder(tf.float32, [None, len(model.features.numeric)])
        model.logits(Blocks(numeric, chosen, weight, embed))
    return declarations.Declaration(tuple(weights), tuple(embeddings))
