"""``partitioning`` of a strategy: a ``ParameterServerStrategy`` cuts large tables along their rows.

A strategy without a ``variable_partitioner`` gets one. It cuts matrices with many more rows than columns that
a Keras layer makes: Keras takes gradients of the parts, and its embeddings look up rows in them. These
variables stay whole:

- a variable that the script makes by itself, as ``tf.GradientTape`` takes no gradient of a cut variable;
- weights of dense layers, which are small or have another shape, as a step would put them together again.

TensorFlow saves the parts as one table under the table's name, and restores them whatever their number is.
Slots of Keras optimizers up to 2.10 (legacy ones) it saves part by part, so those start again if the number
changes. Initial values are drawn for each part, so they differ from those of a whole table; training is the
same otherwise. The risk is a layer that reads its table with ``tf.gather``, which then reads all of it.
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
#: The method by which layers make their variables, in every Keras.
_MAKES_WEIGHTS = "add_weight"


class StrategyPartitioning(object):
    """Gives partitioners to strategies.

    Args:
        note: reports which tables were cut.
        parts: the parts of each table; 0: one for each server; None: as many as have ``least_bytes``, at most
            one for each server.
        least_bytes: the least size of a part, and of a table that is cut.
    """

    def __init__(self, note, parts, least_bytes):
        # type: (Note, Optional[int], int) -> None
        self._note = note
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
                variable_partitioner = self._note.attempt(self._partitioner, partitioners, cluster_resolver)
            else:
                self._note.refused("the script has a partitioner of its own")
            original(own, cluster_resolver, variable_partitioner)

        strategy.__init__ = __init__

    def _partitioner(self, partitioners, resolver):
        # type: (Any, Any) -> Any
        """Return a strategy's partitioner: it returns a shape's numbers of parts, [parts of rows, 1 ...]."""
        servers = max(1, len(resolver.cluster_spec().as_dict().get("ps", ())))
        if self._parts is not None:
            cut = partitioners.FixedShardsPartitioner(self._parts or servers)
        else:
            cut = partitioners.MinSizePartitioner(self._least_bytes, max_shards=servers)

        def partition(shape, dtype, **named):
            # type: (Any, Any, **Any) -> Any
            sizes = self._note.attempt(shape.as_list) or [1]
            is_cut = self._note.attempt(self._is_cut, sizes, dtype)
            parts = list(cut(shape, dtype, **named)) if is_cut else [1] * len(sizes)
            if parts and parts[0] > 1:
                self._note.applied("%s in %d parts" % (sizes, min(parts[0], sizes[0])))
            return parts

        return partition

    def _is_cut(self, sizes, kind):
        # type: (List[int], Any) -> bool
        if len(sizes) != 2 or sizes[0] < partitions.ROWS_TO_COLUMNS * sizes[1]:
            return False
        if sizes[0] * sizes[1] * kind.size < self._least_bytes:
            return False
        if not _is_of_a_layer():
            self._note.refused("a variable of shape %s is the script's own, no layer's" % (sizes,))
            return False
        return True


def _is_of_a_layer():
    # type: () -> bool
    """Return whether the variable that is being made belongs to a Keras layer."""
    frame = sys._getframe()  # type: Any
    while frame is not None:
        if frame.f_code.co_name == _MAKES_WEIGHTS and "keras" in frame.f_globals.get("__name__", ""):
            return True
        frame = frame.f_back
    return False
