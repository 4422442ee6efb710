"""Waits for TensorFlow, and only then loads what looks at it.

A process that never imports TensorFlow pays for one finder on ``sys.meta_path`` and for this module.
"""

from __future__ import absolute_import

from . import loading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Dict, List, Mapping

    from .patching import Instrument

#: What TensorFlow's own modules are called: since 1.4; in 1.15 and 2.0 ``tensorflow`` is a façade.
PACKAGES = ("tensorflow", "tensorflow_core")
#: The modules that are looked at, below ``tensorflow.python``.
MODULES = (
    "client.session",
    "ops.gradients_util",
    "ops.gradients_impl",
    "training.basic_session_run_hooks",
    "training.server_lib",
)


def connect(environment):
    # type: (Mapping[str, str]) -> None
    """Watch TensorFlow in this process.

    Args:
        environment: of the process as it began.
    """
    instruments = []  # type: List[Instrument]

    def loaded(module):
        # type: (ModuleType) -> None
        from . import patching

        if not instruments:
            instruments.append(patching.Instrument(environment))
        instruments[0].patch(module, module.__name__.split(".python.", 1)[1])

    watch = loading.ModuleWatch()
    for name in MODULES:
        for package in PACKAGES:
            watch.when_loaded("%s.python.%s" % (package, name), loaded)
