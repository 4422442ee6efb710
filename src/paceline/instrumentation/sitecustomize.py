"""Python imports this module before the script, because the agent puts this folder first on PYTHONPATH.

It starts watching the script's TensorFlow or PyTorch if the process belongs to a replica. Then it gives way
to the ``sitecustomize`` that it hides: that module runs as if this one did not exist; if there is none, the
import fails as it would without this one. Code here must not raise any error of its own.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _begin():
    # type: () -> None
    """Start the instrumentation; its failures must not affect the script."""
    if sys.version_info < (3, 5) or "PACELINE_REPORT_FILE" not in os.environ:
        return
    try:
        package = __import__("paceline_instrumentation")  # This folder is still on the path.
        package.start(os.environ)
    except Exception:  # noqa: BLE001 - the script never notices
        sys.modules.pop("paceline_instrumentation", None)


def _give_way():
    # type: () -> None
    """Import the next module of this name on the path.

    Raises:
        ImportError: there is none. `site` handles that as it would without this module.
    """
    sys.path[:] = [each for each in sys.path if os.path.abspath(each or os.curdir) != _HERE]
    del sys.modules["sitecustomize"]
    __import__("sitecustomize")


_begin()
_give_way()
