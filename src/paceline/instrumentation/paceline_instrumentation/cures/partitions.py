"""``partitioning``: a large table is cut along its rows, into one part for each parameter server.

If a script makes its tables by ``tf.get_variable`` without a partitioner, the large ones get one. The parts
are consecutive ranges of rows: so TensorFlow saves and restores the table under its single name, whatever the
number of its parts is. A lookup in such a table goes to the part that has the row (``div``, not the default
``mod``). ``tf.gather`` of such a table becomes a lookup, as it would read all of it otherwise.
"""

from __future__ import absolute_import

import functools
import inspect
import sys

from .. import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, List, Mapping, Optional, Set

    from .notes import Note

NAME, VERSION = "partitioning", 1
#: A matrix counts as a table if it has at least this many times as many rows as columns.
ROWS_TO_COLUMNS = 16
#: The training library's default.
LEAST_PART_BYTES = 64 << 10
_VALUE_BYTES = 4
_GET = ("self", "var_store", "name", "shape", "dtype", "initializer")
_READS = "sparse_read"
_LOOK_UP = ("params", "ids", "partition_strategy")


class Partitioning(object):
    """Cuts tables, and makes lookups in them go by ranges of rows.

    Args:
        note: reports which tables were cut.
        servers: how many parameter servers the job has.
        parts: the parts of each table; None: as many as have ``least_bytes``, at most one for each server.
        least_bytes: the least size of a part.
    """

    def __init__(self, note, servers, parts, least_bytes):
        # type: (Note, int, Optional[int], int) -> None
        self._note = note
        self._servers = servers
        self._parts = parts
        self._least_bytes = least_bytes
        #: The operations that make the parts of tables that were cut.
        self._cut = set()  # type: Set[str]

    def patch_scopes(self, module):
        # type: (ModuleType) -> None
        """Give partitioners to ``tf.get_variable``, in ``tensorflow.python.ops.variable_scope``."""
        scope = module.VariableScope
        original = scope.get_variable
        signatures.check(original, _GET, NAME)
        package = module.__name__.rpartition(".")[0]

        @signatures.wraps(original, NAME)
        def get_variable(*arguments, **named):
            # type: (*Any, **Any) -> Any
            call = signatures.bound(original, arguments, named)
            partitioner = (
                None if call is None else self._note.attempt(self._partitioner, call.arguments, package)
            )
            if call is None or partitioner is None:
                return original(*arguments, **named)
            call.arguments["partitioner"] = partitioner
            found = original(*call.args, **call.kwargs)
            self._note.attempt(self._remember, found, package)
            return found

        scope.get_variable = get_variable

    def _partitioner(self, asked, package):
        # type: (Mapping[str, Any], str) -> Any
        """Return a variable's partitioner; None: the variable stays as the script has it."""
        is_whole = asked.get("partitioner") is None and asked["self"].partitioner is None
        sizes = _sizes(asked.get("shape"))
        if not is_whole or sizes is None or hasattr(asked.get("initializer"), "op"):
            return None
        if len(sizes) != 2 or sizes[0] < ROWS_TO_COLUMNS * sizes[1]:
            return None
        parts = self._count(sizes, getattr(asked.get("dtype"), "size", None) or _VALUE_BYTES)
        if parts < 2 or _is_of_variable(asked["self"].name, package):
            return None
        partitioners = sys.modules[package + ".partitioned_variables"]  # type: Any
        return partitioners.fixed_size_partitioner(parts)

    def _count(self, sizes, value_bytes):
        # type: (List[int], int) -> int
        """Return into how many parts a table is cut; a small one is not worth another message."""
        size_bytes = sizes[0] * sizes[1] * value_bytes
        if size_bytes < LEAST_PART_BYTES:
            return 1
        parts = self._parts
        if parts is None:
            parts = min(self._servers, size_bytes // max(1, self._least_bytes))
        return min(parts, sizes[0])

    def _remember(self, variable, package):
        # type: (Any, str) -> None
        if not is_partitioned(variable):
            return
        parts = list(variable)
        self._cut.update(part.op.name for part in parts)
        # From 1.8 on `tf.gather` calls the variable's `sparse_read`, if it has one.
        variable.sparse_read = functools.partial(_look_up, package, variable)
        self._note.applied("%s in %d parts" % (variable.name, len(parts)))

    def patch_lookups(self, module):
        # type: (ModuleType) -> None
        """Make lookups go by ranges of rows, in ``tensorflow.python.ops.embedding_ops``."""
        original = module._embedding_lookup_and_transform
        signatures.check(original, _LOOK_UP, NAME)

        @signatures.wraps(original, NAME)
        def _embedding_lookup_and_transform(params, ids, partition_strategy="mod", *rest, **named):
            # type: (Any, Any, str, *Any, **Any) -> Any
            if self._note.attempt(self._is_cut, params):
                partition_strategy = "div"
            return original(params, ids, partition_strategy, *rest, **named)

        module._embedding_lookup_and_transform = _embedding_lookup_and_transform  # type: ignore[attr-defined]

    def patch_gathers(self, module):
        # type: (ModuleType) -> None
        """Make ``tf.gather`` call a table's ``sparse_read``, as it does by itself from TensorFlow 1.8 on."""
        original = module.gather
        signatures.check(original, ("params", "indices"), NAME)
        if _READS in inspect.unwrap(original).__code__.co_names:
            return

        @signatures.wraps(original, NAME)
        def gather(params, indices, validate_indices=None, name=None, axis=0):
            # type: (Any, Any, Any, Any, Any) -> Any
            if is_partitioned(params) and hasattr(params, _READS) and not axis:
                return params.sparse_read(indices, name)
            return original(params, indices, validate_indices, name, axis)

        module.gather = gather  # type: ignore[attr-defined]

    def _is_cut(self, params):
        # type: (Any) -> bool
        """Return whether a table was cut here; it may be a list of its parts, or of their value tensors."""
        parts = list(params) if is_partitioned(params) or isinstance(params, (list, tuple)) else []
        if len(parts) < 2 or not hasattr(parts[0], "op"):
            return False
        operation = parts[0].op
        if operation.type in ("Identity", "ReadVariableOp") and operation.inputs:
            operation = operation.inputs[0].op
        return operation.name in self._cut


def _is_of_variable(scope, package):
    # type: (str, str) -> bool
    """Return whether a scope makes slots: then its name begins with the name of an existing variable."""
    framework = sys.modules[package.rpartition(".")[0] + ".framework.ops"]  # type: Any
    known = {each.op.name for each in framework.get_default_graph().get_collection("variables")}
    words = scope.split("/")
    return any("/".join(words[:count]) in known for count in range(1, len(words) + 1))


def _look_up(package, table, ids, name=None):
    # type: (str, Any, Any, Any) -> Any
    """Return rows of a cut table, [ids ..., row ...]."""
    lookups = sys.modules[package + ".embedding_ops"]  # type: Any
    return lookups.embedding_lookup(table, ids, "div", name)


def is_partitioned(variable):
    # type: (Any) -> bool
    """Return whether an object is a ``PartitionedVariable`` of TensorFlow's graphs."""
    return hasattr(variable, "_get_variable_list")


def _sizes(shape):
    # type: (Any) -> Optional[List[int]]
    """Return the sizes of a shape as a script gives it; None: it does not give all of them."""
    listed = shape.as_list() if hasattr(shape, "as_list") else shape
    if not isinstance(listed, (list, tuple)):
        return None
    sizes = [getattr(each, "value", each) for each in listed]
    known = [each for each in sizes if isinstance(each, int)]
    return known if len(known) == len(sizes) else None
