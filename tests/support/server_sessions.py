"""Sessions with TensorFlow's servers that do not hang when TensorFlow's runtime loses a call.

`paceline.training.deadlines` says why it does. A test whose call was lost runs again (``--only-rerun``).
"""

from __future__ import annotations

from typing import Any

from paceline.training import clusters

#: A call that takes longer is lost.
PATIENCE_SECONDS = 240.0


def session(cluster: clusters.ClusterTask, target: str, graph: Any) -> Any:
    """Return a session with the servers of a cluster, to which ``target`` leads."""
    from paceline.training import deadlines

    ports = {int(address.rpartition(":")[2]) for role in cluster.addresses.values() for address in role}
    return deadlines.DeadlineSession(target, graph=graph, config=None, ports=ports, seconds=PATIENCE_SECONDS)
