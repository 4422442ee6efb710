"""``unplaced-variables``: variables without a device go to the parameter servers.

A script that makes no device setter, or forgets to use it, has its variables on the worker that runs the
session: the servers are idle, and each worker trains a model of its own. This cure makes such variables under
``tf.train.replica_device_setter``. Variables with a device, local variables, and variables of a process
without a server stay where they are.
"""

from __future__ import absolute_import

import importlib.util
import sys
import weakref

from .. import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Mapping

    from ..servers import ServerWatch
    from .notes import Note

NAME, VERSION = "unplaced-variables", 1
_LOCAL = "local_variables"
#: The modules of TensorFlow that make a variable by a function of another module.
_CALLERS = ("variables", "variable_v1")


class UnplacedVariables(object):
    """Makes variables without a device under a device setter.

    Args:
        note: reports which variables were placed.
        servers: how many parameter servers the job has.
        server_watch: knows which task this process is.
    """

    def __init__(self, note, servers, server_watch):
        # type: (Note, int, ServerWatch) -> None
        self._note = note
        self._servers = servers
        self._server_watch = server_watch
        self._setters = weakref.WeakKeyDictionary()  # type: weakref.WeakKeyDictionary[Any, Any]

    def patch(self, module):
        # type: (ModuleType) -> None
        """Wrap the function that makes a graph's variables, if this module has it: it moved with 2.12."""
        original = getattr(module, "default_variable_creator", None)
        if original is None:  # It moved from one of the two modules to the other.
            if importlib.util.find_spec(module.__name__.replace(".variable_scope", ".ref_variable")) is None:
                self._note.refused("before TensorFlow 1.8 variables are made in many places")
            return
        signatures.check(original, ("next_creator",), NAME)
        package = module.__name__.rpartition(".ops.")[0]

        @signatures.wraps(original, NAME)
        def default_variable_creator(next_creator=None, **named):
            # type: (Any, **Any) -> Any
            setter = self._note.attempt(self._setter, package, named)
            if setter is None:
                return original(next_creator=next_creator, **named)
            with sys.modules[package + ".framework.ops"].device(setter):
                made = original(next_creator=next_creator, **named)
            self._note.attempt(self._say, made)
            return made

        module.default_variable_creator = default_variable_creator  # type: ignore[attr-defined]
        # From TensorFlow 1.12 to 2.15 the module has handed the function to the module that calls it.
        for name in _CALLERS:
            caller = sys.modules.get(package + ".ops." + name)  # type: Any
            if getattr(caller, "default_variable_creator", None) is original:
                caller.default_variable_creator = default_variable_creator

    def _setter(self, package, named):
        # type: (str, Mapping[str, Any]) -> Any
        """Return the device setter for a variable that is to be made; None: it stays where it is."""
        task = self._server_watch.task
        if not self._servers or task is None or task.startswith("/job:ps/"):
            return None
        graph = sys.modules[package + ".framework.ops"].get_default_graph()
        if _LOCAL in (named.get("collections") or ()) or has_place(graph):
            return None
        if graph not in self._setters:
            setters = sys.modules[package + ".training.device_setter"]  # type: Any
            self._setters[graph] = setters.replica_device_setter(ps_tasks=self._servers, worker_device=task)
        return self._setters[graph]

    def _say(self, variable):
        # type: (Any) -> None
        self._note.applied("%s on %s" % (variable.op.name, variable.device))


def has_place(graph):
    # type: (Any) -> bool
    """Return whether new operations of a graph have a job now, or a function that decides on one."""
    stack = graph._device_function_stack
    scopes = stack.peek_objs() if hasattr(stack, "peek_objs") else list(stack)
    if graph._colocation_stack and (
        not hasattr(graph._colocation_stack, "peek_objs") or graph._colocation_stack.peek_objs()
    ):
        return True
    for each in scopes:
        name = str(getattr(each, "display_name", each))
        if "job:" in name or "<" in name or callable(each):
            return True
    return False
