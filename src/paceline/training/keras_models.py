"""Models of `tf_keras` (Keras 2, which TensorFlow's parameter servers need) on Paceline's tables.

The model's embedding layers become embeddings, which are fused, partitioned and updated row by row like any
others; its other variables become weights. The user's own code runs between them (`keras_graphs`).
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tf_keras

from paceline.training import blocks, clusters, declarations, errors, features, places, settings
from paceline.training.checkpoints import checkpoints
from paceline.training.features import FeatureSet
from paceline.training.graph import graphs, keras_graphs
from paceline.training.lazy_tensorflow import tf, tf1

_INITIALIZERS = {
    "Zeros": tf1.zeros_initializer,
    "Ones": tf1.ones_initializer,
    "Constant": tf1.constant_initializer,
    "RandomUniform": tf1.random_uniform_initializer,
    "RandomNormal": tf1.random_normal_initializer,
    "TruncatedNormal": tf1.truncated_normal_initializer,
}

_ALONE = clusters.ClusterTask({}, "evaluator", 0)


@dataclass(frozen=True)
class _Embedding:
    """Embedding layers of the same dimension and initializer, each with the feature that it looks up."""

    name: str
    layers: tuple[Any, ...]
    columns: tuple[features.Categorical, ...]

    def vectors(self, parts: blocks.Blocks) -> list[tuple[Any, Any]]:
        """Return each layer with its vectors (examples, vectors of the feature, dimension)."""
        kind, arguments = _initializer(self.layers[0])
        initializer = _INITIALIZERS[kind](**dict(arguments))
        found = parts.embed(self.name, self.columns, self.layers[0].output_dim, initializer=initializer)
        cut = tf.split(found, [places.vectors(column) for column in self.columns], axis=1)
        return list(zip(self.layers, cut, strict=True))


@dataclass(frozen=True)
class _Weight:
    """A variable of the model that is not a table, with its initial value."""

    name: str
    variable: Any
    value: Any
    trained: bool

    def tensor(self, parts: blocks.Blocks) -> Any:
        """Return the tensor that replaces the variable, in its shape."""
        if self.trained:
            return parts.weight(self.name, self.value.shape, initializer=self.value)
        return tf.constant(self.value)


class KerasModel:
    """A functional, sequential or subclassed `tf_keras` model, to be trained by Paceline.

    Each input of the model reads the feature of its own name, or the features that `inputs` names for it: one
    categorical feature, or numbers side by side. A table has the rows of its feature and starts from its
    layer's initializer; the other weights start from their current values. Padding is id 0. The loss and the
    optimizer that the model was compiled with are not used: those of the job are.
    """

    def __init__(
        self, model: Any, features: FeatureSet, inputs: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Check and record the model.

        Raises:
            SettingsError: something in the model cannot be taken over, or an input has no feature; the
                message names the layer or the input.
        """
        _check(model)
        self.model = model
        self.features = features
        self._inputs = inputs or {}
        self._graph = keras_graphs.record(model)
        self._numbers = {name: self._numeric(asked) for name, asked in self._graph.inputs.items()}
        self._embeddings = _embeddings(
            [(each.layer, self._column(each)) for each in self._graph.lookups.values()]
        )
        self._weights = _weights(model, self._graph.variables.values())

    def logits(self, parts: blocks.Blocks) -> Any:
        """Return logits of shape (examples,)."""
        graph = self._graph
        weights = {id(each.variable): each.tensor(parts) for each in self._weights}
        vectors = {id(layer): found for each in self._embeddings for layer, found in each.vectors(parts)}
        replaced = {name: weights[id(variable)] for name, variable in graph.variables.items()}
        for name, lookup in graph.lookups.items():
            shape = [-1, *lookup.shape, lookup.layer.output_dim]
            replaced[name] = tf.reshape(vectors[id(lookup.layer)], shape)
        for name, asked in graph.inputs.items():
            numbers = tf.gather(parts.numeric, self._numbers[name], axis=1)
            replaced[name] = tf.cast(tf.reshape(numbers, [-1, *asked.shape]), asked.dtype)
        return graph.logits(replaced)

    def restore(self, checkpoint_dir: str, chosen: settings.Settings | None = None) -> Any:
        """Give the model the trained values of the newest checkpoint in a folder, and return the model.

        `chosen` are the settings that it was trained with; if none are given, those of the job.

        Raises:
            CheckpointError: there is no checkpoint, or it does not fit.
        """
        chosen = chosen or settings.read()
        unplanned = dataclasses.replace(
            chosen, partitioning=settings.PartitioningSettings("none"), variable_plan=None
        )
        graph = graphs.build(self, _ALONE, unplanned)
        saved = checkpoints.Checkpoints(checkpoint_dir, graph.contents, chosen.checkpoint.every_seconds)
        with tf1.Session(graph=graph.graph) as session:
            if saved.restore(session) is None:
                raise errors.CheckpointError(f"{checkpoint_dir}: there is no checkpoint to restore from")
            values = session.run(
                {each.shard.variable.name: each.variable for each in graph.contents.parameters}
            )
        for weight in self._weights:
            if weight.trained:
                weight.variable.assign(values[weight.name])
        for table in graph.tables:
            self._restore_table(table, values)
        return self.model

    def _restore_table(self, table: declarations.Table, values: Mapping[str, Any]) -> None:
        layers = {
            (made.name, column): layer
            for made in self._embeddings
            for layer, column in zip(made.layers, made.columns, strict=True)
        }
        first = 0
        for column in table.columns:
            for name, embedding in table.embeddings.items():
                layer = layers[embedding.name, column]
                rows = values[name][first : first + column.rows]
                layer.embeddings.assign(tf.concat([rows, layer.embeddings[column.rows :]], axis=0))
            first += column.rows

    def _names(self, asked: keras_graphs.Input) -> Sequence[str]:
        return self._inputs.get(asked.name, (asked.name,))

    def _numeric(self, asked: keras_graphs.Input) -> list[int]:
        """Return the places of the numbers that an input reads."""
        numeric = [feature.name for feature in self.features.numeric]
        names = self._names(asked)
        for name in names:
            if name not in numeric and any(name == feature.name for feature in self.features.categorical):
                raise errors.SettingsError(
                    f"input {asked.name!r} of the model reads the ids of {name!r} otherwise than by an "
                    "embedding layer; take out mask_zero and computations on ids (features.Several with a "
                    "combiner puts several values together)"
                )
            _check_known(asked, name, numeric)
        if len(names) != math.prod(asked.shape):
            raise errors.SettingsError(
                f"input {asked.name!r} of the model takes {math.prod(asked.shape)} numbers of an example and "
                f"reads {len(names)} features: {', '.join(names)}; name as many by `inputs`"
            )
        return [numeric.index(name) for name in names]

    def _column(self, lookup: keras_graphs.EmbeddingLookup) -> features.Categorical:
        """Return the feature that a layer looks up."""
        known = {each.name: each for each in self.features.categorical}
        names, layer = self._names(lookup.input), keras_graphs.named(lookup.layer)
        if len(names) != 1:
            raise errors.SettingsError(
                f"input {lookup.input.name!r} of the model feeds {layer}, so it can read one feature, not "
                f"{len(names)}; give each feature an input and a layer of its own"
            )
        _check_known(lookup.input, names[0], known)
        column = known[names[0]]
        if lookup.layer.input_dim < column.rows:
            raise errors.SettingsError(
                f"{layer} has {lookup.layer.input_dim} rows (input_dim), and the feature {column.name!r} has "
                f"{column.rows}; make them equal"
            )
        if math.prod(lookup.shape) != places.vectors(column):
            raise errors.SettingsError(
                f"{layer} looks up {math.prod(lookup.shape)} ids of an example, and the feature "
                f"{column.name!r} has {places.vectors(column)}; features.Several with combiner=None gives as "
                "many as its length"
            )
        return column


def _check_known(asked: keras_graphs.Input, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise errors.SettingsError(
            f"input {asked.name!r} of the model reads the feature {name!r}, which is not there"
            f"{errors.did_you_mean(name, known)}; `inputs` says which features an input reads"
        )


def _check(model: Any) -> None:
    """Refuse a model with parts that would be silently ignored."""
    if not isinstance(model, tf_keras.Model):
        raise errors.SettingsError(
            f"{type(model).__module__}.{type(model).__name__} is no model of tf_keras; make it with tf_keras "
            "(Keras 2), as Keras 3 does not train over parameter servers"
        )
    for layer in reversed(keras_graphs.layers(model)):  # a layer comes before the model that contains it
        if layer.losses or layer.activity_regularizer is not None:
            raise errors.SettingsError(
                f"{keras_graphs.named(layer)} adds a loss of its own (a regularizer?), which would not be "
                "trained on; take it out"
            )
        if isinstance(layer, tf_keras.layers.Embedding):
            _check_embedding(layer)
    for variable in model.trainable_weights:
        if variable.constraint is not None or variable.dtype != tf.float32:
            raise errors.SettingsError(
                f"the weight {variable.name!r} has a constraint or is not float32; make it free and float32"
            )


def _check_embedding(layer: Any) -> None:
    if not layer.trainable:
        raise errors.SettingsError(f"{keras_graphs.named(layer)} is not trainable; a table always is")
    if _initializer(layer)[0] not in _INITIALIZERS:
        raise errors.SettingsError(
            f"{keras_graphs.named(layer)} starts from {_initializer(layer)[0]}; a table can start from "
            f"{', '.join(_INITIALIZERS)}"
        )


def _initializer(layer: Any) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Return the name and arguments of a layer's initializer, without the seed, which is the job's."""
    config = layer.embeddings_initializer.get_config()
    arguments = tuple((name, value) for name, value in sorted(config.items()) if name != "seed")
    return type(layer.embeddings_initializer).__name__, arguments


def _embeddings(lookups: Iterable[tuple[Any, features.Categorical]]) -> tuple[_Embedding, ...]:
    """Group layers that can share one table; a feature occurs once in each group."""
    columns: dict[int, tuple[Any, features.Categorical]] = {}
    for layer, column in lookups:
        known = columns.setdefault(id(layer), (layer, column))[1]
        if known != column:
            raise errors.SettingsError(
                f"{keras_graphs.named(layer)} looks up both {known.name!r} and {column.name!r}; give each "
                "feature a layer of its own"
            )
    groups: dict[tuple[Any, ...], list[tuple[Any, features.Categorical]]] = {}
    for layer, column in columns.values():
        kind = (layer.output_dim, *_initializer(layer))
        number = 0
        while any(column == other for _, other in groups.get((*kind, number), ())):
            number += 1
        groups.setdefault((*kind, number), []).append((layer, column))
    names = _unique(f"embeddings/{dimension}" for dimension, *_ in groups)
    return tuple(
        _Embedding(name, tuple(layer for layer, _ in members), tuple(column for _, column in members))
        for name, members in zip(names, groups.values(), strict=True)
    )


def _weights(model: Any, variables: Iterable[Any]) -> tuple[_Weight, ...]:
    """Return each variable once, named without the number of its tensor."""
    once = list({id(each): each for each in variables}.values())
    names = _unique(each.name.partition(":")[0] for each in once)
    trained = {id(each) for each in model.trainable_weights}
    return tuple(
        _Weight(name, each, np.asarray(each.numpy()), id(each) in trained)
        for name, each in zip(names, once, strict=True)
    )


def _unique(names: Iterable[str]) -> list[str]:
    seen: collections.Counter[str] = collections.Counter()
    found = []
    for name in names:
        found.append(f"{name}_{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found
