"""TensorFlow's server without TensorFlow's Python: a script that replaces a parameter server's process.

A parameter server computes in C++ alone. The Python package would take 60 to 210 MB more in each server, for
nothing. So this script calls the C functions that the package itself calls, and imports only the standard
library. Source: `TF_NewServer`, `TF_ServerStart` and `TF_ServerJoin` in tensorflow/c/c_api.h.
"""

from __future__ import absolute_import

import ctypes
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

#: An old TensorFlow, such as 1.12, has no C function that makes a server.
NEW_SERVER = "TF_NewServer"


def command(library, definition):
    # type: (str, int) -> List[str]
    """Return the command of a process that serves forever.

    Args:
        library: the path of the library that has TensorFlow's C functions.
        definition: an inherited file descriptor, positioned at a serialized `tensorflow.ServerDef`.
    """
    # -I -S: the process imports only the standard library, whatever the environment says.
    return [sys.executable, "-I", "-S", __file__, library, str(definition)]


def serve(library, definition):
    # type: (str, bytes) -> None
    """Serve forever.

    Args:
        library: the path of the library that has TensorFlow's C functions.
        definition: a serialized `tensorflow.ServerDef`.

    Raises:
        SystemExit: the server cannot start; the message has TensorFlow's reason.
    """
    c_api = ctypes.CDLL(library)
    for name, result, arguments in (
        ("TF_NewStatus", ctypes.c_void_p, []),
        ("TF_GetCode", ctypes.c_int, [ctypes.c_void_p]),
        ("TF_Message", ctypes.c_char_p, [ctypes.c_void_p]),
        (NEW_SERVER, ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]),
        ("TF_ServerStart", None, [ctypes.c_void_p, ctypes.c_void_p]),
        ("TF_ServerJoin", None, [ctypes.c_void_p, ctypes.c_void_p]),
    ):
        function = getattr(c_api, name)
        function.restype, function.argtypes = result, arguments
    status = c_api.TF_NewStatus()

    def check():
        # type: () -> None
        if c_api.TF_GetCode(status):
            reason = c_api.TF_Message(status).decode()
            sys.exit("error: the parameter server cannot start: %s (is its port free?)" % reason)

    server = c_api.TF_NewServer(definition, len(definition), status)
    check()
    c_api.TF_ServerStart(server, status)
    check()
    c_api.TF_ServerJoin(server, status)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own handler would never run
    with os.fdopen(int(sys.argv[2]), "rb") as file:
        serve(sys.argv[1], file.read())
