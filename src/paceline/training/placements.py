"""Which parameter server holds which variable.

TensorFlow asks a strategy for the task of each variable as it is created. Round-robin counts variables and
is blind to their size; greedy puts each on the server with the fewest bytes so far. Slots of optimizers
follow their variable and are not counted.
"""

from __future__ import annotations

import math
from typing import Any

import tensorflow.compat.v1 as tf1

from paceline.training import clusters, settings


class Greedy:
    """The strategy that balances bytes: an operation goes to the least loaded of `servers` tasks."""

    def __init__(self, servers: int) -> None:
        self._bytes = [0] * servers

    def __call__(self, operation: Any) -> int:
        """The task for this variable, whose bytes it then carries."""
        task = self._bytes.index(min(self._bytes))
        shape = tf1.TensorShape(operation.get_attr("shape")).as_list()
        self._bytes[task] += math.prod(shape) * tf1.as_dtype(operation.get_attr("dtype")).size
        return task


def device_function(cluster: clusters.Cluster, strategy: settings.Settings) -> Any:
    """A device function: variables to the parameter servers, everything else to this replica; None if
    local.
    """
    if cluster.is_local:
        return None
    greedy = strategy.variable_placement == "greedy"
    return tf1.train.replica_device_setter(
        ps_tasks=cluster.parameter_servers,
        worker_device=cluster.task_device,
        ps_strategy=Greedy(cluster.parameter_servers) if greedy else None,
    )
