"""Python imports this before a script, where the agent has put this folder first on PYTHONPATH.

It has the script's TensorFlow watched if the process belongs to a replica, and then gives way to the
``sitecustomize`` that it hides: that one runs as if this one were not there, and if there is none, Python is
told so. Nothing here may raise anything of its own.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _begin():
    # type: () -> None
    """Start the instrumentation; whatever goes wrong with it is no concern of the script."""
    if sys.version_info < (3, 5) or "PACELINE_REPORT_FILE" not in os.environ:
        return
    try:
        package = __import__("paceline_instrumentation")  # This folder is still on the path.
        package.start(os.environ)
    except Exception:  # noqa: BLE001 - the script never notices
        sys.modules.pop("paceline_instrumentation", None)


def _give_way():
    # type: () -> None
    """Import the module of this name that comes next on the path.

    Raises:
        ImportError: there is none. `site` takes that as it would without this module.
    """
    sys.path[:] = [each for each in sys.path if os.path.abspath(each or os.curdir) != _HERE]
    del sys.modules["sitecustomize"]
    __import__("sitecustomize")


_begin()
_give_way()
