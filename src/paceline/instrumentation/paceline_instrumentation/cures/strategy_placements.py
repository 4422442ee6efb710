"""``variable-placement`` of a strategy: which parameter server holds a variable.

TensorFlow 2 assigns variables to the servers in turn, whatever their sizes are. This cure assigns each to the
server with the fewest bytes so far, or to its server in a saved plan. Variables that TensorFlow colocates
with another one, such as the slots of most optimizers, stay there, and their bytes count. Names, checkpoints
and values stay: a variable is made as before, on another server. The risk is that bytes are not traffic: a
small variable may be used more than a large one.
"""

from __future__ import absolute_import

import re
import weakref

from .. import signatures
from . import placements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, List, Mapping

    from .notes import Note

NAME, VERSION = placements.NAME, 1
_SERVER = re.compile(r"/job:ps/(?:replica:\d+/)?task:(\d+)")


class StrategyPlacement(object):
    """Chooses servers in place of a strategy's counter.

    Args:
        note: reports which variables were placed.
        planned: servers by the names of variables and of their parts; others go by size.
    """

    def __init__(self, note, planned):
        # type: (Note, Mapping[str, int]) -> None
        self._note = note
        self._planned = planned
        #: Bytes of each server, by the identity of the strategy.
        self._loads = weakref.WeakKeyDictionary()  # type: weakref.WeakKeyDictionary[Any, List[int]]

    def patch(self, module):
        # type: (ModuleType) -> None
        """Wrap the methods of ``distribute.parameter_server_strategy_v2`` that make variables."""
        strategy = module.ParameterServerStrategyV2Extended
        in_turn, beside = strategy._create_variable_round_robin, strategy._create_variable
        signatures.check(in_turn, ("self", "next_creator"), NAME)
        signatures.check(beside, ("self", "next_creator"), NAME)

        @signatures.wraps(in_turn, NAME)
        def _create_variable_round_robin(own, next_creator, **named):
            # type: (Any, Any, **Any) -> Any
            self._note.attempt(self._choose, own, _full_name(module, named.get("name")))
            made = in_turn(own, next_creator, **named)
            self._note.attempt(self._count, own, made, True)
            return made

        @signatures.wraps(beside, NAME)
        def _create_variable(own, next_creator, **named):
            # type: (Any, Any, **Any) -> Any
            made = beside(own, next_creator, **named)
            if "colocate_with" in named:
                self._note.attempt(self._count, own, made, False)
            return made

        strategy._create_variable_round_robin = _create_variable_round_robin
        strategy._create_variable = _create_variable

    def _of(self, strategy):
        # type: (Any) -> List[int]
        return self._loads.setdefault(strategy, [0] * strategy._num_ps)

    def _choose(self, strategy, name):
        # type: (Any, str) -> None
        """Set the strategy's counter so that its remainder is the server for the next variable."""
        loads, count = self._of(strategy), strategy._variable_count
        server = placements.chosen(self._planned.get(name), loads)
        strategy._variable_count = count - count % len(loads) + len(loads) + server

    def _count(self, strategy, variable, is_chosen):
        # type: (Any, Any, bool) -> None
        """Add a variable's bytes to its server's; report the server if it was chosen here."""
        found = _SERVER.search(str(getattr(variable, "device", "")))
        if found is None:
            return
        server = int(found.group(1))
        self._of(strategy)[server] += _bytes(variable)
        if is_chosen and variable.shape.as_list():  # Scalars, such as counters, are not reported.
            self._note.applied("%s on ps-%d" % (str(variable.name).split(":")[0], server))


def _full_name(module, name):
    # type: (Any, Any) -> str
    """Return the name that a variable will have, which begins with the current name scope."""
    scope = module.ops.get_name_scope()
    return "%s/%s" % (scope, name) if scope else str(name)


def _bytes(variable):
    # type: (Any) -> int
    size = int(variable.dtype.size)
    for each in variable.shape.as_list():
        size *= each or 1
    return size
