"""TensorFlow's servers: one in the process of every replica but the evaluator's."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf

from paceline.training import clusters, lean_server

_LIBRARY = Path(tf.__file__).with_name("libtensorflow_cc.so.2")


def start(cluster: clusters.Cluster) -> Any:
    """Starts the server of this replica, beside whatever else its process does."""
    return tf.distribute.Server(_definition(cluster))


def serve(cluster: clusters.Cluster) -> None:
    """Serves for ever, in place of this process's program: the Python that it has loaded is left behind.

    Where TensorFlow comes without the library that this needs, as on other systems than Linux, the process
    stays as it is.
    """
    if not _LIBRARY.exists():
        start(cluster).join()
        return
    definition = os.memfd_create("server", 0)  # 0: the next program inherits it
    os.write(definition, _definition(cluster).SerializeToString())
    os.lseek(definition, 0, os.SEEK_SET)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-I", lean_server.__file__, str(_LIBRARY), str(definition)])


def _definition(cluster: clusters.Cluster) -> Any:
    addresses = {role: list(hosts) for role, hosts in cluster.addresses.items() if role != "evaluator"}
    if cluster.role == "ps":
        # It fetches what a worker pushes from that worker, and learns of no address later. Who is not there
        # costs nothing: a channel is made when it is first needed (`GrpcChannelCache` of TensorFlow).
        addresses["worker"] = [*addresses.get("worker", []), *cluster.spare_workers]
    return tf.train.ServerDef(
        cluster=tf.train.ClusterSpec(addresses).as_cluster_def(),
        job_name=cluster.role,
        task_index=cluster.index,
        protocol="grpc",
    )
