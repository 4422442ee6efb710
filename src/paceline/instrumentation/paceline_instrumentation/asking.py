"""Records settings outside the steps that make a job slow or let it hang.

Each setting is a fact with a name and a value. Nothing is done in a step.
"""

from __future__ import absolute_import

import time

from . import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Optional

    from .guarding import Guard
    from .reporting import Reporter

_SESSION = ("self", "target", "graph", "config")
_MANAGER = ("self", "local_init_op", "ready_op", "ready_for_local_init_op", "graph", "recovery_wait_secs")
_WAIT = ("self", "master")
_SYNCHRONOUS = ("self", "opt", "replicas_to_aggregate", "total_num_replicas")


class AskWatch(object):
    """Wraps code that is called once with a setting: sessions, session managers, the synchronous optimizer.

    Args:
        reporter: takes the facts.
        guard: shields the script from errors.
    """

    def __init__(self, reporter, guard):
        # type: (Reporter, Guard) -> None
        self._reporter = reporter
        self._guard = guard

    def patch_sessions(self, module):
        # type: (ModuleType) -> None
        """Wrap the constructor of sessions, which takes the script's configuration."""
        base = module.BaseSession
        original = base.__init__
        signatures.check(original, _SESSION)

        @signatures.wraps(original)
        def __init__(own, target="", graph=None, config=None):
            # type: (Any, Any, Any, Any) -> None
            original(own, target, graph, config)
            self._guard(self._note_config, target, config)

        base.__init__ = __init__

    def _note_config(self, target, config):
        # type: (Any, Any) -> None
        if config is not None and config.log_device_placement:
            self._reporter.state("log_device_placement", True)
        if target:  # Otherwise the session is local to this process and contacts no other task.
            has_filters = config is not None and len(config.device_filters) > 0
            self._reporter.state("device_filters", has_filters)

    def patch_managers(self, module):
        # type: (ModuleType) -> None
        """Wrap the session manager's wait for the chief's variables, for which it checks periodically."""
        manager = module.SessionManager
        begin, wait = manager.__init__, manager.wait_for_session
        signatures.check(begin, _MANAGER)
        signatures.check(wait, _WAIT)

        @signatures.wraps(wait)
        def wait_for_session(own, *arguments, **named):
            # type: (Any, *Any, **Any) -> Any
            begun = time.time()
            self._guard(self._note_manager, own)
            session = wait(own, *arguments, **named)
            self._guard(self._note_wait, begun)
            return session

        manager.wait_for_session = wait_for_session

    def _note_manager(self, manager):
        # type: (Any) -> None
        """Report that a worker starts to wait, and how long it sleeps between two checks."""
        self._reporter.state("recovery_wait_seconds", float(manager._recovery_wait_secs))

    def _note_wait(self, begun):
        # type: (float) -> None
        """Report how long a worker has waited."""
        self._reporter.state("session_wait_seconds", round(time.time() - begun, 1))

    def patch_synchronous(self, module):
        # type: (ModuleType) -> None
        """Wrap the optimizer that waits for the gradients of several workers before each step."""
        optimizer = module.SyncReplicasOptimizer
        original = optimizer.__init__
        signatures.check(original, _SYNCHRONOUS)

        @signatures.wraps(original)
        def __init__(own, opt, replicas_to_aggregate, total_num_replicas=None, *arguments, **named):
            # type: (Any, Any, Any, Any, *Any, **Any) -> None
            original(own, opt, replicas_to_aggregate, total_num_replicas, *arguments, **named)
            self._guard(self._note_synchronous, replicas_to_aggregate, total_num_replicas)

        optimizer.__init__ = __init__

    def _note_synchronous(self, needed, total):
        # type: (int, Optional[int]) -> None
        self._reporter.state("replicas_to_aggregate", int(needed))
        self._reporter.state("total_replicas", int(needed if total is None else max(total, needed)))
