"""TensorFlow's servers: one in the process of every replica but the evaluator's."""

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
    """Starts the server of this replica, beside whatever else its process does."""
    _fail_fast()
    return tf.distribute.Server(tf.train.ServerDef.FromString(server_definitions.encoded(cluster)))


def serve(cluster: clusters.ClusterTask) -> None:
    """Serves for ever, in place of this process's program: the Python that it has loaded is left behind, and
    TensorFlow's Python never loaded.

    Where TensorFlow comes without the library that this needs, as on other systems than Linux, the process
    stays as it is.
    """
    library = _library()
    if library is None:
        start(cluster).join()
        return
    _fail_fast()
    definition = os.memfd_create("server", 0)  # 0: the next program inherits it
    os.write(definition, server_definitions.encoded(cluster))
    os.lseek(definition, 0, os.SEEK_SET)
    sys.stdout.flush()
    sys.stderr.flush()
    command = lean_server.command(str(library), definition)
    os.execv(command[0], command)


def _fail_fast() -> None:
    """Has calls to a server that has ended fail: by itself TensorFlow waits for it for ever."""
    os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")


def _library() -> Path | None:
    """The library with TensorFlow's C functions, if there is one; nothing is imported to find it."""
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        return None
    library = Path(spec.origin).with_name(_LIBRARY)
    return library if library.exists() else None
