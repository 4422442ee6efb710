"""The limits of a team's namespace on a cluster, and how much of them is used."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import Cluster, Object, missing_is_fine
from paceline.model import quantities
from paceline.model.jobs.quotas import QuotaUnit, QuotaUse, QuotaUses, Use
from paceline.services.cluster import job_states


async def look(cluster: Cluster, namespace: str) -> QuotaUses:
    """Return the quotas and queues of a namespace.

    Raises:
        ClusterError: the cluster cannot be read, for another reason than a missing right.
    """
    items: list[QuotaUse] = []
    unknown: list[str] = []
    with job_states.allowed(unknown, "quotas"):
        items += map(_quota, (await cluster.list(kinds.QUOTAS, namespace=namespace)).objects)
    with job_states.allowed(unknown, "queues of Kueue"):
        items += map(_queue, await _local_queues(cluster, namespace))
    return QuotaUses(items=tuple(items), unknown=tuple(unknown))


async def _local_queues(cluster: Cluster, namespace: str) -> list[Object]:
    """Return the local queues of Kueue; none if Kueue is not installed."""
    for kind in (kinds.LOCAL_QUEUES, kinds.OLD_LOCAL_QUEUES):
        with missing_is_fine():
            return (await cluster.list(kind, namespace=namespace)).objects
    return []


def _quota(quota: Object) -> QuotaUse:
    status = quota.get("status") or {}
    hard = {**((quota.get("spec") or {}).get("hard") or {}), **(status.get("hard") or {})}
    used = status.get("used") or {}
    return QuotaUse(
        kind=kinds.QUOTAS.name,
        name=quota["metadata"]["name"],
        uses=tuple(
            Use(resource=each, unit=_unit(each), used=_amount(used.get(each)), hard=_amount(hard[each]))
            for each in sorted(hard)
        ),
    )


def _queue(queue: Object) -> QuotaUse:
    status = queue.get("status") or {}
    taken: dict[str, float] = collections.defaultdict(float)
    for flavor in status.get("flavorsReservation") or ():
        for each in flavor.get("resources") or ():
            taken[str(each.get("name"))] += _amount(each.get("total")) or 0.0
    return QuotaUse(
        kind=kinds.LOCAL_QUEUES.name,
        name=queue["metadata"]["name"],
        uses=tuple(
            Use(resource=each, unit=_unit(each), used=taken[each], hard=None) for each in sorted(taken)
        ),
        pending=_count(status, "pendingWorkloads"),
        admitted=_count(status, "admittedWorkloads"),
    )


def _unit(resource: str) -> QuotaUnit:
    """Return the unit of a resource, from its name, such as ``limits.memory``."""
    if resource.startswith("count/"):
        return QuotaUnit.COUNT
    last = resource.rpartition(".")[2]
    if last == "cpu":
        return QuotaUnit.CORES
    is_bytes = last in ("memory", "storage", "ephemeral-storage") or last.startswith("hugepages-")
    return QuotaUnit.BYTES if is_bytes else QuotaUnit.COUNT


def _amount(quantity: Any) -> float | None:
    """Return a quantity as a number; None: it is missing or is not a number."""
    try:
        return None if quantity is None else float(quantities.parse_quantity(quantity))
    except ValueError:
        return None


def _count(status: Mapping[str, Any], name: str) -> int | None:
    found = status.get(name)
    return found if isinstance(found, int) else None
