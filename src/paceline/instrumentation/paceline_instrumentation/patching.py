"""Maps modules of TensorFlow to the code that wraps them, and reports which could not be wrapped."""

from __future__ import absolute_import

import os
import platform
import sys

from . import (
    asking,
    building,
    eager,
    evaluations,
    graphs,
    guarding,
    models,
    reporting,
    saving,
    servers,
    sessions,
    signatures,
    stepping,
    tracebacks,
    traces,
)
from .cures import catalogue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable, Dict, List, Mapping, Optional

    Patch = Callable[[ModuleType], None]


class Instrument(object):
    """Everything that watches the TensorFlow of this process.

    Args:
        environment: the environment with which the process began.
    """

    def __init__(self, environment):
        # type: (Mapping[str, str]) -> None
        self._reporter = reporting.Reporter(environment["PACELINE_REPORT_FILE"])
        self._guard = guarding.Guard(self._reporter)
        tracebacks.connect()
        steps = stepping.Steps(self._reporter, self._guard)
        facts = graphs.Facts()
        model = models.Model(_variables_path(environment))
        trace_watch = traces.TraceWatch(environment)
        server_watch = servers.ServerWatch(self._guard, self._reporter.say, environment)
        session_watch = sessions.SessionWatch(
            steps, self._guard, facts, model, trace_watch, server_watch, self._reporter
        )
        eager_watch = eager.EagerWatch(self._reporter, self._guard, model, trace_watch)
        evaluation_watch = evaluations.EvaluationWatch(self._reporter, self._guard)
        graph_watch = building.GraphWatch(self._guard, facts, steps)
        save_watch = saving.SaveWatch(self._reporter, self._guard, steps)
        ask_watch = asking.AskWatch(self._reporter, self._guard)
        watches = {
            "client.session": session_watch.patch,
            "asked sessions": ask_watch.patch_sessions,
            "ops.gradients_util": graph_watch.patch_gradients,
            "ops.gradients_impl": graph_watch.patch_old_gradients,
            "training.basic_session_run_hooks": graph_watch.patch_hooks,
            "training.saver": save_watch.patch_savers,
            "summary.writer.writer": save_watch.patch_writers,
            "training.sync_replicas_optimizer": ask_watch.patch_synchronous,
            "training.session_manager": ask_watch.patch_managers,
            "training.server_lib": server_watch.patch,
            "distribute.coordinator.cluster_coordinator": eager_watch.patch_coordinator,
            "data.ops.dataset_ops": eager_watch.patch_datasets,
            "eager.def_function": eager_watch.patch_functions,
            "eager.polymorphic_function.polymorphic_function": eager_watch.patch_functions,
            "fit": eager_watch.patch_fit,
            "callbacks": eager_watch.patch_callbacks,
            "evaluated callbacks": evaluation_watch.patch_callbacks,
            "training.evaluation": evaluation_watch.patch_evaluations,
            "optimizers": eager_watch.patch_optimizers,
        }  # type: Dict[str, Patch]
        self._patches = {name: [patch] for name, patch in watches.items()}  # type: Dict[str, List[Patch]]
        for name, cures in catalogue.patches(environment, self._reporter, server_watch).items():
            self._patches.setdefault(name, []).extend(cures)

    def patch(self, module, name):
        # type: (ModuleType, str) -> None
        """Wrap the watched functions of a module, given the name that ``wiring`` uses for it."""
        if "paceline.training.reports" in sys.modules:
            return  # The training library reports by itself.
        for patch in self._patches.get(name, ()):
            try:
                patch(module)
            except signatures.Wrapped:
                pass
            except (AttributeError, signatures.UnknownSignature) as error:
                self._reporter.say("%s cannot be looked into: %s" % (module.__name__, error))
        if name == "client.session":
            version = _version()
            self._reporter.say("TensorFlow %s on Python %s" % (version or "?", platform.python_version()))
            servers.fail_fast(version or "", os.environ)


def _version():
    # type: () -> Optional[str]
    """Return TensorFlow's version; None: it is not known yet."""
    for name in ("tensorflow.python.framework.versions", "tensorflow_core.python.framework.versions"):
        module = sys.modules.get(name)
        if module is not None:
            return str(getattr(module, "__version__", "")) or None
    return None


def _variables_path(environment):
    # type: (Mapping[str, str]) -> Optional[str]
    """Return where this trainer describes the variables; None: another trainer does."""
    folder = environment.get("PACELINE_RUN_DIR")
    first = (
        environment.get("PACELINE_ROLE") in ("chief", "worker") and environment.get("PACELINE_INDEX") == "0"
    )
    return os.path.join(folder, "variables.json") if folder and first else None
