"""``variable-placement``: which parameter server holds a variable, if a script leaves that to TensorFlow.

``tf.train.replica_device_setter`` assigns variables to the servers in turn, whatever their sizes are. This
cure gives its device chooser another strategy: each variable goes to the server with the fewest bytes so far,
or to its server in a saved plan. A slot stays with its variable, as before. All replicas build the same
graph, so all choose the same servers.
"""

from __future__ import absolute_import

from .. import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Dict, Mapping, Optional, Sequence

    from .notes import Note

NAME, VERSION = "variable-placement", 1
_CHOOSER = ("self", "ps_tasks", "ps_device", "worker_device", "merge_devices", "ps_ops", "ps_strategy")
#: The size of a value of unknown type.
_VALUE_BYTES = 4


class Placement(object):
    """Replaces the strategy of device setters that have TensorFlow's default.

    Args:
        note: reports which variables were placed.
        planned: servers by the names of variables; others go by size.
    """

    def __init__(self, note, planned):
        # type: (Note, Mapping[str, int]) -> None
        self._note = note
        self._planned = planned

    def patch(self, module):
        # type: (ModuleType) -> None
        """Replace the strategy in ``tensorflow.python.training.device_setter``."""
        chooser, in_turn = module._ReplicaDeviceChooser, module._RoundRobinStrategy
        original = chooser.__init__
        signatures.check(original, _CHOOSER, NAME)

        @signatures.wraps(original, NAME)
        def __init__(own, ps_tasks, ps_device, worker_device, merge_devices, ps_ops, ps_strategy):
            # type: (Any, Any, Any, Any, Any, Any, Any) -> None
            if isinstance(ps_strategy, in_turn):
                ps_strategy = Strategy(ps_tasks, self._planned, self._note)
            else:
                self._note.refused(
                    "the script has a strategy of its own: %s"
                    % getattr(ps_strategy, "__name__", type(ps_strategy).__name__)
                )
            original(own, ps_tasks, ps_device, worker_device, merge_devices, ps_ops, ps_strategy)

        chooser.__init__ = __init__


class Strategy(object):
    """Assigns each variable to a parameter server; a device setter takes it as its ``ps_strategy``.

    Args:
        servers: how many servers there are.
        planned: servers by the names of variables; others go by size.
        note: reports which variables were placed.
    """

    def __init__(self, servers, planned, note):
        # type: (int, Mapping[str, int], Note) -> None
        self._planned = planned
        self._note = note
        self._loads = [0] * servers  # bytes
        self._chosen = {}  # type: Dict[str, int]

    def __call__(self, operation):
        # type: (Any) -> int
        """Return the server of the variable that an operation makes."""
        name = str(operation.name)
        if name not in self._chosen:
            self._chosen[name] = server = chosen(self._planned.get(name), self._loads)
            self._loads[server] += size_bytes(operation)
            self._note.applied("%s on ps-%d" % (name, server))
        return self._chosen[name]


def chosen(planned, loads):
    # type: (Optional[int], Sequence[int]) -> int
    """Return the planned server, or else the server with the fewest bytes, the first if there are several.

    Args:
        planned: a server, which a smaller job may not have; None: the plan has none.
        loads: the bytes of each server.
    """
    if planned is not None and planned < len(loads):
        return planned
    return min(range(len(loads)), key=loads.__getitem__)


def size_bytes(operation):
    # type: (Any) -> int
    """Return the size of the variable that an operation makes, from the operation's shape; 0: it has none."""
    try:
        definition = getattr(operation, "node_def", operation)
        attributes = definition.attr
        size = _VALUE_BYTES
        for each in attributes["shape"].shape.dim:
            size *= max(1, int(each.size))
        return size if "shape" in attributes else 0
    except (AttributeError, TypeError, ValueError):
        return 0
