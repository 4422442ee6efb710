"""``partitioning`` of a strategy: a ``ParameterServerStrategy`` cuts large tables along their rows.

A strategy that the script gave no ``variable_partitioner`` gets one. It cuts matrices with many more rows
than columns that a layer of Keras makes: Keras takes gradients of the parts, and its embeddings look rows up
in them. A variable that the script makes by itself stays whole, as ``tf.GradientTape`` takes no gradient of
one that is cut; so does a dense layer, as a step would put it together again. TensorFlow saves the parts as
one under the table's name, and restores them whatever their number is. Initial values of a table are drawn
for each part, so they differ from those of a whole one; what the values then do is the same. The risk is a
layer that uses its table by ``tf.gather``: that reads all of it.
"""

from __future__ import absolute_import

import sys

from .. import signatures
from . import partitions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, List, Optional

    from .notes import Note

NAME, VERSION = partitions.NAME, 1
#: The method of layers that makes their variables, in every Keras.
_MAKES_WEIGHTS = "add_weight"


class StrategyPartitioning(object):
    """Hands partitioners to strategies.

    Args:
        note: says which tables were cut.
        parts: of each table; None: as many as have ``least_bytes``, at most one for each server.
        least_bytes: of a part.
        servers: how many parameter servers the job has.
    """

    def __init__(self, note, servers, parts, least_bytes):
        # type: (Note, int, Optional[int], int) -> None
        self._note = note
        self._servers = servers
        self._parts = parts
        self._least_bytes = least_bytes

    def patch(self, module):
        # type: (ModuleType) -> None
        """Wrap the strategy of ``tensorflow.python.distribute.parameter_server_strategy_v2``."""
        strategy = module.ParameterServerStrategyV2
        original = strategy.__init__
        signatures.check(original, ("self", "cluster_resolver", "variable_partitioner"), NAME)
        partitioners = module.sharded_variable

        @signatures.wraps(original, NAME)
        def __init__(own, cluster_resolver, variable_partitioner=None):
            # type: (Any, Any, Any) -> None
            if variable_partitioner is None:
                variable_partitioner = self._note.attempt(self._partitioner, partitioners)
            else:
                self._note.refused("the script has a partitioner of its own")
            original(own, cluster_resolver, variable_partitioner)

        strategy.__init__ = __init__

    def _partitioner(self, partitioners):
        # type: (Any) -> Any
        """Return what a strategy asks for the numbers of parts of a shape, [parts of rows, 1 ...]."""
        if self._parts is not None:
            cut = partitioners.FixedShardsPartitioner(self._parts)
        else:
            cut = partitioners.MinSizePartitioner(self._least_bytes, max_shards=max(1, self._servers))

        def partition(shape, dtype, **named):
            # type: (Any, Any, **Any) -> Any
            sizes = shape.as_list()
            is_cut = self._note.attempt(self._is_cut, sizes)
            parts = list(cut(shape, dtype, **named)) if is_cut else [1] * len(sizes)
            if parts and parts[0] > 1:
                self._note.applied("%s in %d parts" % (sizes, min(parts[0], sizes[0])))
            return parts

        return partition

    def _is_cut(self, sizes):
        # type: (List[int]) -> bool
        if len(sizes) != 2 or sizes[0] < partitions.ROWS_TO_COLUMNS * sizes[1]:
            return False
        if not _is_of_a_layer():
            self._note.refused("a variable of shape %s is the script's own, no layer's" % (sizes,))
            return False
        return True


def _is_of_a_layer():
    # type: () -> bool
    """Whether a layer of Keras makes the variable that is being made."""
    frame = sys._getframe()  # type: Any
    while frame is not None:
        if frame.f_code.co_name == _MAKES_WEIGHTS and "keras" in frame.f_globals.get("__name__", ""):
            return True
        frame = frame.f_back
    return False
