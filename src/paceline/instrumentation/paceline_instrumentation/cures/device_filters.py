"""``device-filters``: a trainer's session sees the parameter servers and its own task, and no other trainer.

Without filters a session is created only when every task of the cluster answers, so a worker that has ended
or has not begun keeps the others from starting. A graph with operations on other trainers needs those
trainers: for it the cure is refused.
"""

from __future__ import absolute_import

from .. import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..servers import ServerWatch
    from .notes import Note

NAME, VERSION = "device-filters", 1
_SERVERS = "/job:ps"


class DeviceFilters(object):
    """Gives filters to sessions that have none.

    Args:
        note: reports whether filters were given.
        server_watch: knows which task this process is.
    """

    def __init__(self, note, server_watch):
        # type: (Note, ServerWatch) -> None
        self._note = note
        self._server_watch = server_watch

    def patch(self, module):
        # type: (ModuleType) -> None
        """Wrap the sessions of ``tensorflow.python.client.session``."""
        session = module.BaseSession
        original = session.__init__
        signatures.check(original, ("self", "target", "graph", "config"), NAME)

        @signatures.wraps(original, NAME)
        def __init__(own, target="", graph=None, config=None):
            # type: (Any, Any, Any, Any) -> None
            filtered = self._note.attempt(self._filtered, module, target, graph, config)
            original(own, target, graph, config if filtered is None else filtered)

        session.__init__ = __init__

    def _filtered(self, module, target, graph, config):
        # type: (Any, Any, Any, Any) -> Any
        """Return a session's configuration with filters; None: it stays unchanged."""
        task = self._server_watch.task
        if not target or task is None:  # It uses this process alone, or another process's server.
            return None
        if config is not None and config.device_filters:
            self._note.refused("the script has filters of its own")
            return None
        if graph is None:
            graph = module.ops.get_default_graph()
        other = next(
            (each.device for each in graph.get_operations() if is_elsewhere(each.device, task)), None
        )
        if other is not None:
            self._note.refused("its graph has operations on %s" % other)
            return None
        made = module.config_pb2.ConfigProto()
        if config is not None:
            made.CopyFrom(config)
        made.device_filters.extend([_SERVERS, task])
        self._note.applied("session: %s and %s" % (_SERVERS, task))
        return made


def is_elsewhere(device, task):
    # type: (str, str) -> bool
    """Return whether a device is on a task that is neither a parameter server nor this trainer."""
    parts = device.split("/")
    job = next((each for each in parts if each.startswith("job:")), None)
    if job is None or "/" + job == _SERVERS:
        return False
    own_job, own_task = task.split("/")[1:]
    return job != own_job or not any(each == own_task for each in parts if each.startswith("task:"))
