"""The computation of a `tf_keras` model, as a graph whose variables can be replaced by other tensors.

The model is run once as a `tf.function`, so the graph is the user's own code, however it is written. In the
graph of that function each use of a variable is a read of the whole variable or a gather of some of its rows.
The operations from these reads and gathers to the logit are kept, and are later inserted into another graph
on other tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tf_keras

from paceline.training import errors
from paceline.training.graph import fragments
from paceline.training.lazy_tensorflow import tf, tf1

_SAME_VALUES = {"Identity", "Cast", "Reshape", "ExpandDims", "Squeeze"}
_UNBOUNDED = {"Add", "AddN", "AddV2", "BatchMatMulV2", "BiasAdd", "Einsum", "MatMul", "Sub", "Sum"}


@dataclass(frozen=True)
class Input:
    """An input of the model: its name, its shape without the batch dimension, its type."""

    name: str
    shape: tuple[int, ...]
    dtype: Any


@dataclass(frozen=True)
class EmbeddingLookup:
    """An embedding layer that looks up ids (examples, `*shape`) of an input.

    The vectors are (examples, `*shape`, the layer's `output_dim`).
    """

    layer: Any
    input: Input
    shape: tuple[int, ...]


@dataclass(frozen=True)
class KerasGraph:
    """The graph of the logit, and of the gradients of the tensors that it depends on.

    `forward` computes the logit, `output`; `backward` computes the gradients from the gradient of the logit,
    `upstream`. The mappings are keyed by the name of the tensor in that graph: the `inputs` that the model
    reads other than by a lookup, the `lookups`, the `variables` that it reads whole, and the `constants`.
    `gradients` has the name of the gradient of each lookup and variable; it has the shape of that lookup or
    variable.

    TensorFlow could differentiate the forward part in the other graph, except for functions with a gradient
    of their own (swish is one), whose code holds tensors of the first graph.
    """

    forward: fragments.Fragment
    backward: fragments.Fragment
    output: str
    upstream: str
    gradients: Mapping[str, str]
    inputs: Mapping[str, Input]
    lookups: Mapping[str, EmbeddingLookup]
    variables: Mapping[str, Any]
    constants: Mapping[str, Any]

    def logits(self, replaced: Mapping[str, Any]) -> Any:
        """Add the model to the current graph and return its logits (examples,).

        `replaced` has a tensor for each input (examples, `*shape`), each lookup (examples, `*shape`,
        `output_dim`) and each variable (its own shape).
        """
        fixed = {**replaced, **{name: tf.constant(value) for name, value in self.constants.items()}}

        @tf.custom_gradient  # type: ignore[untyped-decorator]
        def output(*values: Any) -> Any:
            taken = {**fixed, **dict(zip(self.gradients, values, strict=True))}
            found = self.forward.put(taken, "keras")

            def gradient(upstream: Any) -> list[Any]:
                given = self.backward.put({**taken, **found, self.upstream: upstream}, "keras_gradient")
                return [given[name] for name in self.gradients.values()]

            return found[self.output], gradient

        logits = output(*(replaced[name] for name in self.gradients))
        return tf.reshape(tf.cast(logits, tf.float32), [-1])


def record(model: Any) -> KerasGraph:
    """Run a model that is functional or has been called before, and return its graph.

    Raises:
        SettingsError: the model does something that cannot be taken over; the message names the layer.
    """
    return _Recorder(model).graph()


class _Recorder:
    """Reads the graph of a model's function."""

    def __init__(self, model: Any) -> None:
        self._model = model
        structure, names = _signature(model)
        self._function = _run(model, structure, training=False)
        self._check_training(_run(model, structure, training=True))
        self._inputs = {
            tensor.name: Input(name, _after_batch(tensor, f"input {name!r}"), tensor.dtype)
            for tensor, name in zip(self._function.inputs[: len(names)], names, strict=True)
        }
        by_handle = {id(variable.handle): variable for variable in model.variables}
        self._variables = {
            inner.name: by_handle[id(outer)]
            for outer, inner in self._function.captures
            if id(outer) in by_handle
        }
        self._constants = {
            inner.name: outer.numpy()
            for outer, inner in self._function.captures
            if outer.dtype not in (tf.resource, tf.variant)
        }
        self._embeddings = {
            id(layer.embeddings): layer
            for layer in layers(model)
            if isinstance(layer, tf_keras.layers.Embedding) and layer.built
        }

    def graph(self) -> KerasGraph:
        """Keep the operations from the replaceable tensors to the logit, and those of the gradients."""
        output = self._logit()
        lookups, reads = dict(self._lookups()), dict(self._reads())
        ends = {*self._inputs, *self._constants, *lookups, *reads}
        forward = fragments.cut(self._function, [output], ends)
        operations = [self._function.get_operation_by_name(node.name) for node in forward.definition.node]
        for operation in operations:
            self._check_use(operation)
        upstream, gradients = self._gradients(
            output, [name for name in forward.takes if name in lookups | reads]
        )
        inner = {tensor.name: tensor for operation in operations for tensor in operation.outputs}
        backward = fragments.cut(self._function, list(gradients.values()), {*ends, *inner, upstream.name})
        needed = [inner[name] for name in backward.takes if name in inner]
        return KerasGraph(
            forward=fragments.cut(self._function, [output, *needed], ends),
            backward=backward,
            output=output.name,
            upstream=upstream.name,
            gradients={name: gradient.name for name, gradient in gradients.items()},
            inputs=_named_in(forward.takes, self._inputs),
            lookups=_named_in(forward.takes, lookups),
            variables=_named_in(forward.takes, reads),
            constants=_named_in(forward.takes, self._constants),
        )

    def _gradients(self, output: Any, names: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Return a placeholder for the gradient of the output, and the gradients that follow from it.

        The placeholder has the shape of the output. The gradients are those of the tensors `names`, each in
        the shape of its tensor; a tensor without a gradient is left out.
        """
        with self._function.as_default():
            upstream = tf1.placeholder(output.dtype, output.shape)
            tensors = [self._function.get_tensor_by_name(name) for name in names]
            found = zip(names, tf1.gradients(output, tensors, upstream), strict=True)
            return upstream, {name: tf.identity(each) for name, each in found if each is not None}

    def _uses(self, kind: str) -> Iterator[tuple[Any, Any]]:
        """Return the operations of a kind that take a variable first, each with that variable."""
        for operation in self._function.get_operations():
            if operation.type == kind and operation.inputs[0].name in self._variables:
                yield operation, self._variables[operation.inputs[0].name]

    def _reads(self) -> Iterator[tuple[str, Any]]:
        for operation, variable in self._uses("ReadVariableOp"):
            if id(variable) not in self._embeddings:
                yield operation.outputs[0].name, variable

    def _lookups(self) -> Iterator[tuple[str, EmbeddingLookup]]:
        for operation, variable in self._uses("ResourceGather"):
            layer = self._embeddings.get(id(variable))
            if layer is None:
                continue
            ids = operation.inputs[1]
            source = _source(ids)
            if source.name not in self._inputs:
                raise errors.SettingsError(
                    f"{named(layer)} gets its ids from {source.op.name!r} ({source.op.type}), not "
                    "straight from an input; give each feature an input of its own"
                )
            shape = _after_batch(ids, f"ids of {named(layer)}")
            yield operation.outputs[0].name, EmbeddingLookup(layer, self._inputs[source.name], shape)

    def _check_use(self, operation: Any) -> None:
        """Refuse an operation that takes the variable itself instead of its values."""
        for tensor in operation.inputs:
            if tensor.name in self._variables:
                variable = self._variables[tensor.name]
                layer = self._embeddings.get(id(variable))
                if layer is not None:
                    raise errors.SettingsError(
                        f"{named(layer)} is used otherwise than to look up ids ({operation.type}); "
                        "use another weight there"
                    )
                raise errors.SettingsError(
                    f"the weight {variable.name!r} is used in {operation.name!r} ({operation.type}), where "
                    "no other value can take its place; do that without tf.function, loops and gathers"
                )
            if tensor.dtype in (tf.resource, tf.variant):
                raise errors.SettingsError(
                    f"{self._place(operation.name)} uses something that is no weight ({operation.type}); do "
                    "that in the features"
                )

    def _check_training(self, other: Any) -> None:
        """Refuse a model that computes something else in training (`other`), as one graph serves both."""
        found, expected = (
            {(each.name, each.type) for each in graph.get_operations() if each.type != "Placeholder"}
            for graph in (other, self._function)
        )
        if found != expected:
            name, _ = min(found ^ expected)
            raise errors.SettingsError(
                f"{self._place(name)} computes something else in training than in evaluation; take it out, "
                "or set trainable=False on a layer with moving statistics"
            )

    def _logit(self) -> Any:
        """Return the logit, (examples,) or (examples, 1).

        It is the input of a final sigmoid, or the output itself if that is not a probability.
        """
        outputs = tf.nest.flatten(self._function.structured_outputs)
        if len(outputs) != 1:
            raise errors.SettingsError(f"the model has {len(outputs)} outputs; one, the logit, is expected")
        if _after_batch(outputs[0], "output") not in ((), (1,)):
            raise errors.SettingsError(
                f"the output of the model has the shape {outputs[0].shape}; one number for each example is "
                "expected"
            )
        last = _source(outputs[0]).op
        if last.type == "Sigmoid":
            return last.inputs[0]
        if last.type not in _UNBOUNDED:
            raise errors.SettingsError(
                f"the model ends in {last.name!r} ({last.type}); it must end in a sigmoid or in a layer "
                "without activation"
            )
        return outputs[0]

    def _place(self, name: str) -> str:
        """Describe, for a message, the innermost layer in whose scope an operation is."""
        scopes = name.split("/")
        inside = [each for each in layers(self._model) if each.name in scopes and each is not self._model]
        if not inside:
            return f"the operation {name!r}"
        return named(max(inside, key=lambda each: scopes.index(each.name)))


def _signature(model: Any) -> tuple[Any, list[str]]:
    """Return the structure of the model's inputs, and their names in TensorFlow's order."""
    spec = model.save_spec()
    if spec is None:
        raise errors.SettingsError(
            f"the inputs of the model {model.name!r} are not known yet; call it once on a batch"
        )
    (structure, *others), named = spec
    flat = tf.nest.flatten(structure)
    if others or named or not all(type(each) is tf.TensorSpec for each in flat):
        raise errors.SettingsError(
            f"the model {model.name!r} must take dense tensors, in one argument: a tensor, a list or a dict"
        )
    names = sorted(structure) if isinstance(structure, Mapping) else [each.name for each in flat]
    if len(set(names)) != len(flat):
        raise errors.SettingsError(f"the model {model.name!r} has inputs without a name; call it on a dict")
    return structure, names


def _run(model: Any, structure: Any, *, training: bool) -> Any:
    @tf.function  # type: ignore[untyped-decorator]
    def call(given: Any) -> Any:
        return model(given, training=training)

    return call.get_concrete_function(structure).graph


def _after_batch(tensor: Any, what: str) -> tuple[int, ...]:
    if tensor.shape.rank in (None, 0) or None in tensor.shape[1:]:
        raise errors.SettingsError(
            f"the {what} has the shape {tensor.shape}; all but the first dimension must be known"
        )
    return tuple(tensor.shape[1:])


def _named_in(names: Sequence[str], known: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in known.items() if name in names}


def _source(tensor: Any) -> Any:
    """Return the earliest tensor that has the same values as this one, in the same order."""
    while tensor.op.type in _SAME_VALUES or _is_only_column(tensor.op):
        tensor = tensor.op.inputs[0]
    return tensor


def _is_only_column(operation: Any) -> bool:
    """Return whether an operation is `x[:, 0]` of a column (examples, 1)."""
    if operation.type != "StridedSlice" or operation.inputs[0].shape[1:] != (1,):
        return False
    whole = operation.get_attr("begin_mask") & operation.get_attr("end_mask") & 1
    strides = tf.get_static_value(operation.inputs[3])
    return bool(whole) and strides is not None and strides[0] == 1


def layers(model: Any) -> list[Any]:
    """Return all layers of a model at any depth, the model itself included."""
    return [each for each in (model, *model.submodules) if isinstance(each, tf_keras.layers.Layer)]


def named(layer: Any) -> str:
    """Describe a layer for a message."""
    return f"layer {layer.name!r} ({type(layer).__name__})"
