"""Which of several processes acts: the holder of a lease, for as long as it renews it.

As Kubernetes' own controllers do (``k8s.io/client-go/tools/leaderelection``): times of others are never
compared with one's own clock. Who waits takes the lease over when it has not seen it change for its whole
duration; who holds it and cannot renew it stops earlier than that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from paceline.engines.kubernetes import kinds, times
from paceline.engines.kubernetes.clusters import Cluster, ClusterError, Object

#: The lease of the one operator that acts.
OPERATOR = "paceline-operator"
DURATION_SECONDS, RENEW_WITHIN_SECONDS, RETRY_SECONDS = 15.0, 10.0, 2.0

#: A lease that was not renewed for so long is free; clocks may differ by less.
STALE_SECONDS = 60.0

log = logging.getLogger(__name__)


class LeaseHolding(NamedTuple):
    """Who says that he acts.

    Attributes:
        holder: whom the lease names; empty: it was given back.
        renewed_at: when he said so last, in Unix seconds by his clock; None: never.
    """

    namespace: str
    holder: str
    renewed_at: float | None

    def is_held(self, now: float) -> bool:
        """Whether a process holds it, and has renewed it lately."""
        return bool(self.holder) and self.renewed_at is not None and now - self.renewed_at <= STALE_SECONDS


async def holdings(cluster: Cluster, name: str) -> list[LeaseHolding]:
    """Return who holds the leases of a name, in all namespaces; those that were renewed last come first.

    Raises:
        ClusterError: they cannot be listed.
    """
    found = []
    for each in (await cluster.list(kinds.LEASES)).objects:
        if each["metadata"]["name"] == name:
            spec = each.get("spec") or {}
            renewed = times.seconds_if(spec.get("renewTime"))
            holder = spec.get("holderIdentity") or ""
            found.append(LeaseHolding(each["metadata"]["namespace"], holder, renewed))
    return sorted(found, key=lambda each: each.renewed_at or 0.0, reverse=True)


class Lease:
    """A lease that one of several processes holds.

    Args:
        cluster: where it is.
        name: its name.
        namespace: its namespace.
        identity: who this process is; no other may be called the same.
        clock: Unix seconds, for what others are shown.
    """

    def __init__(
        self, cluster: Cluster, name: str, namespace: str, *, identity: str, clock: Callable[[], float]
    ) -> None:
        self._cluster = cluster
        self._name = name
        self._namespace = namespace
        self._identity = identity
        self._clock = clock

    async def acquire(self) -> None:
        """Return when this process holds the lease."""
        loop = asyncio.get_running_loop()
        seen, since = "", loop.time()
        while True:
            try:
                found = await self._read()
                if found is None:
                    await self._cluster.create(kinds.LEASES, self._made(None))
                    return
                version = found["metadata"]["resourceVersion"]
                if version != seen:
                    seen, since = version, loop.time()
                holder = (found.get("spec") or {}).get("holderIdentity")
                if holder in (None, "", self._identity) or loop.time() - since > DURATION_SECONDS:
                    await self._cluster.replace(kinds.LEASES, self._made(found))
                    return
            except ClusterError as error:
                log.info("the lease is not ours yet: %s", error.message)
            await asyncio.sleep(RETRY_SECONDS)

    async def hold(self) -> None:
        """Renew the lease again and again; return when it is lost."""
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        while loop.time() - renewed < RENEW_WITHIN_SECONDS:
            await asyncio.sleep(RETRY_SECONDS)
            try:
                async with asyncio.timeout(RENEW_WITHIN_SECONDS / 2):
                    found = await self._read()
                    if found is not None and found["spec"].get("holderIdentity") != self._identity:
                        log.error("%s holds the lease now", found["spec"].get("holderIdentity"))
                        return
                    if found is None:
                        await self._cluster.create(kinds.LEASES, self._made(None))
                    else:
                        await self._cluster.replace(kinds.LEASES, self._made(found))
                renewed = loop.time()
            except (ClusterError, TimeoutError) as error:
                log.warning("the lease could not be renewed: %s", error)
        log.error("the lease could not be renewed for %g s", RENEW_WITHIN_SECONDS)

    async def release(self) -> None:
        """Give the lease back, so that the next one need not wait."""
        found = await self._read()
        if found is not None and found["spec"].get("holderIdentity") == self._identity:
            made = dict(found)
            made["spec"] = {**found["spec"], "holderIdentity": ""}
            await self._cluster.replace(kinds.LEASES, made)

    async def _read(self) -> Object | None:
        try:
            return await self._cluster.get(kinds.LEASES, self._name, self._namespace)
        except ClusterError as error:
            if error.is_missing:
                return None
            raise

    def _made(self, before: Object | None) -> Object:
        """Return the lease as ours; in the place of another one only if that is still as it was."""
        now = times.micro_text(self._clock())
        old = (before or {}).get("spec") or {}
        is_new = old.get("holderIdentity") != self._identity
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": round(DURATION_SECONDS),
            "acquireTime": now if is_new else old.get("acquireTime"),
            "renewTime": now,
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + (1 if is_new and before else 0),
        }
        metadata = {"name": self._name, "namespace": self._namespace}
        if before is not None:
            metadata["resourceVersion"] = before["metadata"]["resourceVersion"]
        return {"apiVersion": kinds.LEASES.api_version, "kind": "Lease", "metadata": metadata, "spec": spec}
