"""Watches a training script: its steps, variables, optimizers and failures.

``start`` is the only entry point. Nothing happens until the script imports TensorFlow or PyTorch; then a few
of their functions are wrapped, right after the modules that define them were executed.
"""

from __future__ import absolute_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

#: Set to ``off``, this variable disables the instrumentation.
SWITCH = "PACELINE_INSTRUMENTATION"


def start(environment):
    # type: (Mapping[str, str]) -> None
    """Watch TensorFlow and PyTorch, unless that is switched off or there is no file to report to.

    Args:
        environment: the environment of this process; the script may change it later.
    """
    if environment.get(SWITCH, "auto") == "off" or not environment.get("PACELINE_REPORT_FILE"):
        return
    from . import wiring

    wiring.connect(dict(environment))
