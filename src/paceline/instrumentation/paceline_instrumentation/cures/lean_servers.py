"""``lean-servers``: a parameter server is TensorFlow's C server and nothing else.

A script's server starts only when it is joined. Then it replaces the script: the same process, without
TensorFlow's Python. What the script does between creating and joining its server makes no difference to the
server. A script that goes on beside its server keeps the server within its process.
"""

from __future__ import absolute_import

import ctypes
import os
import sys
import tempfile
import threading

from .. import lean_server, signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Optional

    from .notes import Note

NAME, VERSION = "lean-servers", 1
#: After this time a server that was not joined starts within the script: others wait for it.
JOIN_SECONDS = 10.0
_JOB = "ps"
_BEGIN = ("self", "server_or_cluster_def", "job_name", "task_index", "protocol", "config", "start")
_OWN_THREADS = "paceline"
_LIBRARY, _EXTENSION = "libtensorflow_cc.so.2", "_pywrap_tensorflow_internal"


class LeanServers(object):
    """Delays a server until it is joined.

    Args:
        note: reports whether the script was replaced.
    """

    def __init__(self, note):
        # type: (Note) -> None
        self._note = note
        self._lock = threading.Lock()
        self._held = None  # type: Any
        self._start = None  # type: Any
        self._library = None  # type: Optional[str]

    def patch(self, module):
        # type: (ModuleType) -> None
        """Wrap the servers of ``tensorflow.python.training.server_lib``."""
        server = module.Server
        original, start, join, target = server.__init__, server.start, server.join, server.target
        signatures.check(original, _BEGIN, NAME)
        self._start = start

        @signatures.wraps(original, NAME)
        def __init__(own, *arguments, **named):
            # type: (Any, *Any, **Any) -> None
            self._release(None, "its process has more than one server")
            bound = signatures.bound(original, (own,) + arguments, named)
            if bound is None or not self._note.attempt(self._fits, bound.arguments):
                original(own, *arguments, **named)
                return
            bound.arguments["start"] = False
            original(*bound.args, **bound.kwargs)
            self._hold(own)

        def start_when_joined(own):
            # type: (Any) -> None
            if own is not self._held:
                start(own)

        def join_instead(own):
            # type: (Any) -> None
            if own is self._held:
                self._note.attempt(self._replace, own)
                self._release(own, None)
            join(own)

        def started_target(own):
            # type: (Any) -> Any
            self._release(own, "the script asks for its server's target")
            return target.fget(own)

        server.__init__ = __init__
        server.start = signatures.wraps(start, NAME)(start_when_joined)
        server.join = signatures.wraps(join, NAME)(join_instead)
        server.target = property(started_target, doc=target.__doc__)

    def _fits(self, arguments):
        # type: (Any) -> bool
        """Return whether a server's arguments make a parameter server that can be replaced."""
        job = arguments.get("job_name") or getattr(arguments["server_or_cluster_def"], "job_name", None)
        if job != _JOB:
            return False
        self._library = library()
        if self._library is None:
            self._note.refused("this TensorFlow has no C function that makes a server")
            return False
        return True

    def _hold(self, server):
        # type: (Any) -> None
        self._held = server
        reason = "the script does not join its server within %g s" % JOIN_SECONDS
        timer = threading.Timer(JOIN_SECONDS, self._release, (server, reason))
        timer.daemon = True
        timer.name = _OWN_THREADS + " server"
        timer.start()

    def _release(self, server, reason):
        # type: (Any, Optional[str]) -> None
        """Start a given server if it is held (None: any held server); report the reason, if there is one."""
        with self._lock:
            held = self._held
            if held is None or (server is not None and server is not held):
                return
            if reason is not None:
                self._note.refused(reason)
            self._held = None
            self._start(held)

    def _replace(self, server):
        # type: (Any) -> None
        """Replace this process's program with the server; return only if that is not possible."""
        with self._lock:
            if self._held is not server:  # It was not joined in time.
                return
            beside = [each.name for each in threading.enumerate() if not each.name.startswith(_OWN_THREADS)]
            if beside != [threading.main_thread().name] or threading.current_thread() is not (
                threading.main_thread()
            ):
                self._note.refused("the script has threads beside its server: %s" % ", ".join(beside))
                return
            with tempfile.TemporaryFile() as file:
                file.write(server.server_def.SerializeToString())
                file.seek(0)
                os.set_inheritable(file.fileno(), True)
                command = lean_server.command(str(self._library), file.fileno())
                self._note.applied("server: %s" % os.path.basename(str(self._library)))
                self._note.finish()
                sys.stdout.flush()
                sys.stderr.flush()
                os.execv(command[0], command)


def library():
    # type: () -> Optional[str]
    """Return the path of the library with TensorFlow's C functions; None: it cannot make a server."""
    extension = next(
        (module for name, module in list(sys.modules.items()) if name.split(".")[-1] == _EXTENSION), None
    )
    path = getattr(extension, "__file__", None)
    if path is None:
        return None
    beside = os.path.join(os.path.dirname(os.path.dirname(path)), _LIBRARY)
    found = beside if os.path.exists(beside) else path
    return found if hasattr(ctypes.CDLL(found), lean_server.NEW_SERVER) else None
