"""``unique-ids``: a lookup pulls each row once, however often its id is in the batch.

Ids repeat in a batch, popular ones often. TensorFlow's lookup pulls a row and pushes a gradient for each
occurrence, unless the caller has made the ids unique, as ``embedding_lookup_sparse`` does. The values stay
the same; the gradients of a row are summed before they are sent instead of after.
"""

from __future__ import absolute_import

import sys

from .. import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from .notes import Note

NAME, VERSION = "unique-ids", 1
_MADE_UNIQUE = ("Unique", "UniqueV2")


class UniqueIds(object):
    """Makes the ids of lookups unique.

    Args:
        note: reports which lookups were changed.
    """

    def __init__(self, note):
        # type: (Note) -> None
        self._note = note

    def patch(self, module):
        # type: (ModuleType) -> None
        """Wrap the function that looks up rows, in ``tensorflow.python.ops.embedding_ops``."""
        original = module._embedding_lookup_and_transform
        signatures.check(original, ("params", "ids"), NAME)
        package = module.__name__.rpartition(".ops.")[0]

        @signatures.wraps(original, NAME)
        def _embedding_lookup_and_transform(params, ids, *rest, **named):
            # type: (Any, Any, *Any, **Any) -> Any
            made = self._note.attempt(self._unique, package, ids)
            if made is None:
                return original(params, ids, *rest, **named)
            ids, flat, places = made
            rows = original(params, flat, *rest, **named)
            return self._spread(package, rows, ids, places)

        module._embedding_lookup_and_transform = _embedding_lookup_and_transform  # type: ignore[attr-defined]

    def _unique(self, package, ids):
        # type: (str, Any) -> Any
        """Return ids as a tensor, the distinct ids, and each id's place among these; None: nothing to do."""
        ops, array = sys.modules[package + ".framework.ops"], _array(package)  # type: Any, Any
        tensor = ops.convert_to_tensor(ids, name="ids")
        if not hasattr(tensor, "op") or tensor.op.type in _MADE_UNIQUE or tensor.shape.ndims == 0:
            return None
        flat, places = array.unique(array.reshape(tensor, [-1]))[:2]
        self._note.applied(tensor.op.name)
        return tensor, flat, places

    def _spread(self, package, rows, ids, places):
        # type: (str, Any, Any, Any) -> Any
        """Return the rows of all ids, [ids ..., row ...], from the rows of the distinct ids."""
        array = _array(package)
        found = array.gather(rows, places)
        shape = array.concat([array.shape(ids), array.shape(found)[1:]], 0)
        result = array.reshape(found, shape)
        result.set_shape(ids.get_shape().concatenate(rows.get_shape()[1:]))
        return result


def _array(package):
    # type: (str) -> Any
    return sys.modules[package + ".ops.array_ops"]
