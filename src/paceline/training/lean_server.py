"""TensorFlow's server without TensorFlow's Python: run as a script in place of a parameter server's process.

A parameter server computes in C++ alone. The Python package takes 210 MB more beside it, in every one of
them, for nothing. So this calls the C functions that the package itself calls, and imports only the standard
library. Source: `TF_NewServer`, `TF_ServerStart` and `TF_ServerJoin` in tensorflow/c/c_api.h.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys


def serve(library: str, definition: bytes) -> None:
    """Serves for ever.

    Args:
        library: path of `libtensorflow_cc`.
        definition: a serialised `tensorflow.ServerDef`.

    Raises:
        SystemExit: the server cannot start; with TensorFlow's reason.
    """
    c_api = ctypes.CDLL(library)
    for name, result, *arguments in (
        ("TF_NewStatus", ctypes.c_void_p),
        ("TF_GetCode", ctypes.c_int, ctypes.c_void_p),
        ("TF_Message", ctypes.c_char_p, ctypes.c_void_p),
        ("TF_NewServer", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p),
        ("TF_ServerStart", None, ctypes.c_void_p, ctypes.c_void_p),
        ("TF_ServerJoin", None, ctypes.c_void_p, ctypes.c_void_p),
    ):
        function = getattr(c_api, name)
        function.restype, function.argtypes = result, arguments
    status = c_api.TF_NewStatus()

    def check() -> None:
        if c_api.TF_GetCode(status):
            reason = c_api.TF_Message(status).decode()
            sys.exit(f"error: the parameter server cannot start: {reason} (is its port free?)")

    server = c_api.TF_NewServer(definition, len(definition), status)
    check()
    c_api.TF_ServerStart(server, status)
    check()
    c_api.TF_ServerJoin(server, status)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own handler never gets its turn
    with os.fdopen(int(sys.argv[2]), "rb") as file:
        serve(sys.argv[1], file.read())
