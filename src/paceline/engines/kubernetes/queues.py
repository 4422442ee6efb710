"""Whose queue it is that a job names: Kueue's or Volcano's."""

from __future__ import annotations

import enum

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import Cluster, ClusterError


class QueueSystem(enum.StrEnum):
    """What lets jobs of a queue begin."""

    KUEUE = "kueue"
    VOLCANO = "volcano"


_QUEUES = (
    (kinds.LOCAL_QUEUES, QueueSystem.KUEUE),
    (kinds.OLD_LOCAL_QUEUES, QueueSystem.KUEUE),
    (kinds.VOLCANO_QUEUES, QueueSystem.VOLCANO),
)


async def system_of(cluster: Cluster, queue: str, namespace: str) -> QueueSystem | None:
    """Return whose queue of this name there is for a namespace; None when there is none.

    Where neither is installed the API server does not know the kinds, and says the same.

    Raises:
        ClusterError: it cannot be looked at.
    """
    for kind, system in _QUEUES:
        try:
            await cluster.get(kind, queue, namespace if kind.is_namespaced else None)
        except ClusterError as error:
            if not error.is_missing:
                raise
        else:
            return system
    return None
