"""Which module of TensorFlow is wrapped by what, and what could not be."""

from __future__ import absolute_import

from paceline_instrumentation import building, graphs, guarding, reporting, sessions, signatures

if False:  # for type checkers
    from types import ModuleType
    from typing import Callable, Dict, List, Mapping


class Instrument(object):
    """All that looks at the TensorFlow of this process.

    Args:
        environment: of the process as it began.
    """

    def __init__(self, environment):
        # type: (Mapping[str, str]) -> None
        self._reporter = reporting.Reporter(environment["PACELINE_REPORT_FILE"])
        self._guard = guarding.Guard(self._reporter)
        facts = graphs.Facts()
        session_watch = sessions.SessionWatch(self._reporter, self._guard, facts)
        graph_watch = building.GraphWatch(self._guard, facts)
        self._patches = {
            "client.session": session_watch.patch,
            "ops.gradients_util": graph_watch.patch_gradients,
            "ops.gradients_impl": graph_watch.patch_old_gradients,
            "training.basic_session_run_hooks": graph_watch.patch_hooks,
        }  # type: Dict[str, Callable[[ModuleType], None]]

    def patch(self, module, name):
        # type: (ModuleType, str) -> None
        """Wrap what is looked at in a module, called ``name`` below ``tensorflow.python``."""
        try:
            self._patches[name](module)
        except (AttributeError, signatures.UnknownSignature) as error:
            self._reporter.note("%s is not seen: %s" % (name, error))
