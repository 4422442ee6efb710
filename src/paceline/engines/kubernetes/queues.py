"""Finds out whether the queue that a job names belongs to Kueue or to Volcano."""

from __future__ import annotations

import enum

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import Cluster, missing_is_fine


class QueueSystem(enum.StrEnum):
    """A system that admits the jobs of a queue."""

    KUEUE = "kueue"
    VOLCANO = "volcano"


_QUEUES = (
    (kinds.LOCAL_QUEUES, QueueSystem.KUEUE),
    (kinds.OLD_LOCAL_QUEUES, QueueSystem.KUEUE),
    (kinds.VOLCANO_QUEUES, QueueSystem.VOLCANO),
)


async def system_of(cluster: Cluster, queue: str, namespace: str) -> QueueSystem | None:
    """Return the system that has a queue of this name for a namespace; None if neither has one.

    If a system is not installed, the API server does not know its kinds and also answers "not found".

    Raises:
        ClusterError: a queue cannot be read.
    """
    for kind, system in _QUEUES:
        with missing_is_fine():
            await cluster.get(kind, queue, namespace if kind.is_namespaced else None)
            return system
    return None
