"""Sees into a training script: its steps, variables, optimizers and failures.

``start`` is all that is called from outside. Nothing happens until the script imports TensorFlow; then a few
methods of it are wrapped, right after the modules that define them were executed.
"""

from __future__ import absolute_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

#: Set to ``off`` it leaves the script alone.
SWITCH = "PACELINE_INSTRUMENTATION"


def start(environment):
    # type: (Mapping[str, str]) -> None
    """Have TensorFlow watched, unless that is switched off or there is no file to report to.

    Args:
        environment: of this process; the script may change it later.
    """
    if environment.get(SWITCH, "auto") == "off" or not environment.get("PACELINE_REPORT_FILE"):
        return
    from . import wiring

    wiring.connect(dict(environment))
