"""Hears which task of a cluster a process is, from the server that its script starts."""

from __future__ import absolute_import

import re

from . import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, MutableMapping, Optional

    from .guarding import Guard

_BEGIN = ("self", "server_or_cluster_def", "job_name", "task_index")
_FAIL_FAST, _FAIL_FAST_SINCE = "GRPC_FAIL_FAST", (2, 4)


def fail_fast(version, environment):
    # type: (str, MutableMapping[str, str]) -> None
    """Have calls to a server that has ended fail, where a TensorFlow can: by itself it waits for ever.

    A version that knows the variable, but not this value, ends the process for it.
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found.group(1)), int(found.group(2))) >= _FAIL_FAST_SINCE:
        environment.setdefault(_FAIL_FAST, "use_caller")


class ServerWatch(object):
    """Wraps ``tf.train.Server``.

    Args:
        guard: keeps errors from the script.

    Attributes:
        task: TensorFlow's name of this process, such as ``/job:worker/task:0``; None: it started no server.
    """

    def __init__(self, guard):
        # type: (Guard) -> None
        self._guard = guard
        self.task = None  # type: Optional[str]

    def patch(self, module):
        # type: (ModuleType) -> None
        """Wrap the servers of ``tensorflow.python.training.server_lib``."""
        server = module.Server
        original = server.__init__
        signatures.check(original, _BEGIN)

        @signatures.wraps(original)
        def __init__(own, server_or_cluster_def, job_name=None, task_index=None, *arguments, **named):
            # type: (Any, Any, Any, Any, *Any, **Any) -> None
            original(own, server_or_cluster_def, job_name, task_index, *arguments, **named)
            self._guard(self._note, own)

        server.__init__ = __init__

    def _note(self, server):
        # type: (Any) -> None
        definition = server.server_def
        self.task = "/job:%s/task:%d" % (definition.job_name, definition.task_index)
