"""TensorFlow's servers: one in the process of every replica except the evaluator."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from paceline.instrumentation.paceline_instrumentation import lean_server
from paceline.training import clusters, server_definitions
from paceline.training.lazy_tensorflow import tf

_LIBRARY = "libtensorflow_cc.so.2"


def start(cluster: clusters.ClusterTask) -> Any:
    """Start the server of this replica, inside this process."""
    _fail_fast()
    return tf.distribute.Server(tf.train.ServerDef.FromString(server_definitions.encoded(cluster)))


def serve(cluster: clusters.ClusterTask) -> None:
    """Serve forever, in place of this process's program.

    The new program discards the Python code that is loaded, and never loads TensorFlow's Python code. If
    TensorFlow comes without the library that this needs, as on systems other than Linux, the server runs in
    this process.
    """
    library = _library()
    if library is None:
        start(cluster).join()
        return
    _fail_fast()
    definition = os.memfd_create("server", 0)  # with flags 0 the next program inherits it
    os.write(definition, server_definitions.encoded(cluster))
    os.lseek(definition, 0, os.SEEK_SET)
    sys.stdout.flush()
    sys.stderr.flush()
    command = lean_server.command(str(library), definition)
    os.execv(command[0], command)


def _fail_fast() -> None:
    """Make calls to a server that has ended fail; by default TensorFlow waits for it forever."""
    os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")


def _library() -> Path | None:
    """Return the library with TensorFlow's C functions, if there is one; nothing is imported to find it."""
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        return None
    library = Path(spec.origin).with_name(_LIBRARY)
    return library if library.exists() else None
