"""``transfer-precision``: rows of tables and their gradients cross the network in half the bytes.

Rows that a lookup gathers on a parameter server are cast to a 16-bit type there, and back on the worker; the
gradients of these rows are cast in the same way in the other direction. The servers keep float32, and the
optimizer computes in it. Only lookups (``tf.nn.embedding_lookup`` and functions built on it) in float32
tables of another job are changed. Rows and gradients are rounded, so values change: bfloat16 keeps the range
of float32 and 8 bits of a number; float16 keeps 11 bits and loses values smaller than 6e-8 or larger than
65504. Names of variables and checkpoints stay. ``SyncReplicasOptimizer`` sends its gradients by itself, in
float32.
"""

from __future__ import absolute_import

import sys

from .. import signatures
from . import partitions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, List, Set

    from ..servers import ServerWatch
    from .notes import Note

NAME, VERSION = "transfer-precision", 1
TYPES = ("bfloat16", "float16")
_LOOK_UP = ("params", "ids", "partition_strategy", "name", "max_norm", "transform_fn")
_READS = ("Identity", "ReadVariableOp")


class TransferPrecision(object):
    """Casts rows and gradients that go from one job to another.

    Args:
        note: reports for which tables.
        kind: the type that is sent.
        server_watch: knows which task this process is.
    """

    def __init__(self, note, kind, server_watch):
        # type: (Note, str, ServerWatch) -> None
        self._note = note
        self._kind = kind
        self._server_watch = server_watch
        #: The operations that make the tables, or their parts, whose lookups are cast.
        self._tables = set()  # type: Set[str]

    def patch_lookups(self, module):
        # type: (ModuleType) -> None
        """Cast rows, in ``tensorflow.python.ops.embedding_ops``."""
        original = module._embedding_lookup_and_transform
        signatures.check(original, _LOOK_UP, NAME)
        package = module.__name__.rpartition(".ops.")[0]

        @signatures.wraps(original, NAME)
        def _embedding_lookup_and_transform(*arguments, **named):
            # type: (*Any, **Any) -> Any
            call = signatures.bound(original, arguments, named)
            tables = None if call is None else self._note.attempt(self._remote, call.arguments)
            if call is None or not tables:
                return original(*arguments, **named)
            call.arguments["transform_fn"] = _Sending(package, self._kind, self._server_watch.task)
            ids = call.arguments["ids"] = _operations(package, "framework.ops").convert_to_tensor(
                call.arguments["ids"]
            )
            if len(tables) > 1 or ids.get_shape().ndims == 1:
                rows = original(*call.args, **call.kwargs)
            else:  # For a single table, TensorFlow applies the transform only if the ids are a list.
                rows = _flat(package, original, call, ids)
            self._tables.update(tables)
            self._note.applied(", ".join(tables))
            return rows

        module._embedding_lookup_and_transform = _embedding_lookup_and_transform  # type: ignore[attr-defined]

    def _remote(self, asked):
        # type: (Any) -> List[str]
        """Return a lookup's tables if all are float32 and on another job; otherwise none."""
        task = self._server_watch.task
        if task is None or asked.get("transform_fn") is not None:
            return []
        params = asked["params"]
        parts = (
            list(params)
            if isinstance(params, (list, tuple)) or partitions.is_partitioned(params)
            else [params]
        )
        is_fit = all(
            getattr(getattr(part, "dtype", None), "base_dtype", None) == "float32"
            and _job(part.device) not in ("", _job(task))
            for part in parts
        )
        return [_made_by(part) for part in parts] if is_fit else []

    def patch_optimizers(self, module):
        # type: (ModuleType) -> None
        """Cast gradients of rows, in ``tensorflow.python.training.optimizer``."""
        optimizer = module.Optimizer
        original = optimizer.apply_gradients
        signatures.check(original, ("self", "grads_and_vars"), NAME)
        package = module.__name__.rpartition(".training.")[0]

        @signatures.wraps(original, NAME)
        def apply_gradients(own, grads_and_vars, *arguments, **named):
            # type: (Any, Any, *Any, **Any) -> Any
            pairs = list(grads_and_vars)  # It may be a generator.
            sent = self._note.attempt(self._sent, package, pairs)
            return original(own, pairs if sent is None else sent, *arguments, **named)

        optimizer.apply_gradients = apply_gradients

    def _sent(self, package, pairs):
        # type: (str, Any) -> Any
        return [(self._gradient_sent(package, gradient, variable), variable) for gradient, variable in pairs]

    def _gradient_sent(self, package, gradient, variable):
        # type: (str, Any, Any) -> Any
        """Return a table's gradient with its values cast here, and cast back where the table is."""
        if not hasattr(gradient, "indices") or variable.op.name not in self._tables:
            return gradient
        if _job(gradient.values.device) == _job(variable.device):
            return gradient
        ops, math = _operations(package, "framework.ops"), _operations(package, "ops.math_ops")
        with ops.device(self._server_watch.task):
            small = math.cast(gradient.values, self._kind)
        with ops.colocate_with(variable.op):
            values = math.cast(small, gradient.values.dtype)
        return type(gradient)(values, gradient.indices, gradient.dense_shape)


class _Sending(object):
    """Transforms the rows that a lookup has gathered from a part, where the part is.

    Args:
        package: the package of TensorFlow's modules.
        kind: the type that is sent.
        task: the task that receives the rows.
    """

    def __init__(self, package, kind, task):
        # type: (str, str, Any) -> None
        self._ops, self._math = _operations(package, "framework.ops"), _operations(package, "ops.math_ops")
        self._kind = kind
        self._task = task

    def __call__(self, rows):
        # type: (Any) -> Any
        small = self._math.cast(rows, self._kind)
        with self._ops.colocate_with(None, ignore_existing=True), self._ops.device(self._task):
            return self._math.cast(small, rows.dtype)


def _flat(package, original, call, ids):
    # type: (str, Any, Any, Any) -> Any
    """Look up ids of any shape as a list; return the rows in the shape of the ids, [ids ..., row ...]."""
    array = _operations(package, "ops.array_ops")
    call.arguments["ids"] = array.reshape(ids, [-1])
    rows = original(*call.args, **call.kwargs)
    found = array.reshape(rows, array.concat([array.shape(ids), array.shape(rows)[1:]], 0))
    found.set_shape(ids.get_shape().concatenate(rows.get_shape()[1:]))
    return found


def _made_by(table):
    # type: (Any) -> str
    """Return the name of the operation that makes a table, also from a tensor of the table's values."""
    operation = table.op
    while operation.type in _READS and operation.inputs:
        operation = operation.inputs[0].op
    return str(operation.name)


def _job(device):
    # type: (Any) -> str
    """Return the job of a device such as ``/job:ps/task:0``; empty: it has none."""
    return next((part for part in str(device or "").split("/") if part.startswith("job:")), "")


def _operations(package, name):
    # type: (str, str) -> Any
    return sys.modules[package + "." + name]
