"""``lazy-adam``: Adam updates only the rows that a batch uses, and decays only their moments.

In each step TensorFlow's own sparse path of Adam decays the moments of all rows of a table and moves all
rows. This cure computes the same formula (Kingma and Ba 2015, section 2, the efficient form) for the rows of
the gradient alone, as ``tf.contrib.opt.LazyAdamOptimizer`` does. Names and shapes of variables and slots
stay, so checkpoints are compatible with Adam's. A dense gradient goes through TensorFlow's own code.
"""

from __future__ import absolute_import

import sys

from .. import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Optional, Tuple

    from .notes import Note

NAME, VERSION = "lazy-adam", 1
_LARGEST = "amsgrad needs the largest moment of every row"
_THIRD = "Keras 3 does not train with parameter servers"


class LazyAdam(object):
    """Replaces the way Adam applies a sparse gradient.

    Args:
        note: reports to which variables it was applied.
    """

    def __init__(self, note):
        # type: (Note) -> None
        self._note = note

    def patch_sessions(self, module):
        # type: (ModuleType) -> None
        """Replace it in ``tf.train.AdamOptimizer``: both kinds of variables go through one method."""
        adam = module.AdamOptimizer
        original = adam._apply_sparse_shared
        signatures.check(original, ("self", "grad", "var", "indices", "scatter_add"), NAME)

        @signatures.wraps(original, NAME)
        def _apply_sparse_shared(own, grad, var, indices, scatter_add):
            # type: (Any, Any, Any, Any, Callable[..., Any]) -> Any
            def change():
                # type: () -> Any
                kind, ops = var.dtype.base_dtype, _operations(module)
                one, two = (ops.math.cast(power, kind) for power in own._get_beta_accumulators())
                rate = ops.math.cast(own._lr_t, kind) * ops.math.sqrt(1 - two) / (1 - one)
                return ops.rows_moved(
                    grad,
                    var,
                    indices,
                    (own.get_slot(var, "m"), ops.math.cast(own._beta1_t, kind)),
                    (own.get_slot(var, "v"), ops.math.cast(own._beta2_t, kind)),
                    rate,
                    ops.math.cast(own._epsilon_t, kind),
                    scatter_add,
                )

            made = self._applied(var, change)
            return original(own, grad, var, indices, scatter_add) if made is None else made[0]

        adam._apply_sparse_shared = _apply_sparse_shared

    def patch_keras(self, module):
        # type: (ModuleType) -> None
        """Replace it in a Keras Adam, of whichever generation the module has."""
        adam = module.Adam
        if hasattr(adam, "_resource_apply_sparse"):
            self._patch_slotted(adam, module)
        else:
            self._patch_listed(adam)

    def _patch_slotted(self, adam, module):
        # type: (Any, ModuleType) -> None
        """Replace it where the optimizer keeps slots: the Keras of TensorFlow 1.13 to 2.10."""
        original = adam._resource_apply_sparse
        signatures.check(original, ("self", "grad", "var", "indices", "apply_state"), NAME)

        @signatures.wraps(original, NAME)
        def _resource_apply_sparse(own, grad, var, indices, apply_state=None):
            # type: (Any, Any, Any, Any, Any) -> Any
            def change():
                # type: () -> Any
                place = var.device, var.dtype.base_dtype
                known = (apply_state or {}).get(place) or own._fallback_apply_state(*place)
                return _operations(module).rows_moved(
                    grad,
                    var,
                    indices,
                    (own.get_slot(var, "m"), known["beta_1_t"]),
                    (own.get_slot(var, "v"), known["beta_2_t"]),
                    known["lr"],
                    known["epsilon"],
                    own._resource_scatter_add,
                )

            if own.amsgrad:
                self._note.refused(_LARGEST)
                return original(own, grad, var, indices, apply_state)
            made = self._applied(var, change)
            return original(own, grad, var, indices, apply_state) if made is None else made[0]

        adam._resource_apply_sparse = _resource_apply_sparse

    def _patch_listed(self, adam):
        # type: (Any) -> None
        """Replace it where the optimizer keeps lists of moments: Keras from 2.11 on, and ``tf_keras``."""
        original = adam.update_step
        signatures.check(original, ("self", "gradient", "variable"), NAME)
        is_third = signatures.takes(original, "learning_rate")

        @signatures.wraps(original, NAME)
        def update_step(own, gradient, variable, *arguments, **named):
            # type: (Any, Any, Any, *Any, **Any) -> Any
            reason = _THIRD if is_third else _LARGEST if own.amsgrad else None
            if reason is not None or not hasattr(gradient, "indices"):
                if hasattr(gradient, "indices"):
                    self._note.refused(str(reason))
                return original(own, gradient, variable, *arguments, **named)
            changes = self._note.attempt(_changes, own, gradient, variable)
            if changes is None:
                return original(own, gradient, variable, *arguments, **named)
            for changed, change in changes:
                changed.scatter_add(change)
            self._note.applied(_name(variable))
            return None

        adam.update_step = update_step

    def _applied(self, variable, change):
        # type: (Any, Callable[[], Any]) -> Optional[Tuple[Any]]
        """Return the result of a change; None: it failed, and the reason was reported.

        The result is a tuple of one, as a change returns a graph's operation, or nothing when it runs
        eagerly.
        """
        made = self._note.attempt(lambda: (change(),))
        if made is not None:
            self._note.applied(_name(variable))
        return made


class _Operations(object):
    """The operations of the TensorFlow whose module is patched; 1.15 and 2.0 have them in another package."""

    def __init__(self, package):
        # type: (str) -> None
        self.math = sys.modules[package + ".ops.math_ops"]  # type: Any
        self.array = sys.modules[package + ".ops.array_ops"]  # type: Any
        self.flow = sys.modules[package + ".ops.control_flow_ops"]  # type: Any

    def rows_moved(self, grad, var, indices, first, second, rate, epsilon, scatter_add):
        # type: (Any, Any, Any, Any, Any, Any, Any, Callable[..., Any]) -> Any
        """Return an operation that updates some rows of a variable and of its two moments.

        Args:
            grad: the gradients of the rows, [rows, ...].
            var: the table.
            indices: the rows, [rows], each once.
            first: the slot of the first moment, and the share of it that stays.
            second: the slot of the second moment, and the share of it that stays.
            rate: the learning rate, corrected for the bias of the moments.
            epsilon: the constant added to the root of the second moment.
            scatter_add: adds rows to a variable.
        """
        (mean, kept), (square, kept_square) = first, second
        old_mean, old_square = self._rows(mean, indices), self._rows(square, indices)
        mean_change = (1 - kept) * (grad - old_mean)
        square_change = (1 - kept_square) * (grad * grad - old_square)
        move = rate * (old_mean + mean_change) / (self.math.sqrt(old_square + square_change) + epsilon)
        return self.flow.group(
            scatter_add(mean, indices, mean_change),
            scatter_add(square, indices, square_change),
            scatter_add(var, indices, -move),
        )

    def _rows(self, variable, indices):
        # type: (Any, Any) -> Any
        # In older versions ``gather`` from a resource variable would read all of it.
        return (
            variable.sparse_read(indices)
            if hasattr(variable, "handle")
            else self.array.gather(variable, indices)
        )


def _operations(module):
    # type: (ModuleType) -> _Operations
    """Return the operations of the TensorFlow that a module, its own or one of Keras, uses."""
    inner = "tensorflow_core.python"
    is_inner = module.__name__.startswith("tensorflow_core.") or inner + ".ops.math_ops" in sys.modules
    return _Operations(inner if is_inner else "tensorflow.python")


def _changes(optimizer, gradient, variable):
    # type: (Any, Any, Any) -> Any
    """Return the changes of a variable and of its two moments: pairs of a variable and its changed rows."""
    tf = sys.modules["tensorflow"]  # type: Any
    place = optimizer._index_dict[optimizer._var_key(variable)]
    mean, square = optimizer._momentums[place], optimizer._velocities[place]
    values, rows = _summed(tf, optimizer, gradient)
    kind = variable.dtype
    step = tf.cast(optimizer.iterations + 1, kind)
    kept, kept_square = tf.cast(optimizer.beta_1, kind), tf.cast(optimizer.beta_2, kind)
    correction = tf.sqrt(1 - tf.pow(kept_square, step)) / (1 - tf.pow(kept, step))
    rate = correction * tf.cast(optimizer.learning_rate, kind)
    old_mean, old_square = tf.gather(mean, rows), tf.gather(square, rows)
    mean_change = (1 - kept) * (values - old_mean)
    square_change = (1 - kept_square) * (tf.square(values) - old_square)
    move = rate * (old_mean + mean_change) / (tf.sqrt(old_square + square_change) + optimizer.epsilon)
    return [
        (changed, tf.IndexedSlices(change, rows))
        for changed, change in ((mean, mean_change), (square, square_change), (variable, -move))
    ]


def _summed(tf, optimizer, gradient):
    # type: (Any, Any, Any) -> Any
    """Return a gradient's values and rows, each row once; optimizers before 2.11 do not sum them."""
    values, rows = gradient.values, gradient.indices
    if hasattr(optimizer, "_deduplicate_sparse_grad"):
        return values, rows
    rows, places = tf.unique(rows)
    return tf.math.unsorted_segment_sum(values, places, tf.shape(rows)[0]), rows


def _name(variable):
    # type: (Any) -> str
    return str(variable.name).split(":")[0]
