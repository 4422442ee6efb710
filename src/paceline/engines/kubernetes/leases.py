"""Leader election: of several processes, the one holding a lease acts, for as long as it renews the lease.

It works as in Kubernetes' own controllers (``k8s.io/client-go/tools/leaderelection``): a process never
compares times written by other processes with its own clock. A waiting process takes over the lease if the
lease has not changed for its whole duration. A holder that cannot renew the lease stops before that time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from paceline.engines.kubernetes import kinds, times
from paceline.engines.kubernetes.clusters import Cluster, ClusterError, Object, missing_is_fine

#: The lease of the one operator that acts.
OPERATOR = "paceline-operator"
DURATION_SECONDS, RENEW_WITHIN_SECONDS, RETRY_SECONDS = 15.0, 10.0, 2.0

#: A lease that was not renewed for this long counts as free; clocks may differ by less than this.
STALE_SECONDS = 60.0

log = logging.getLogger(__name__)


class LeaseHolding(NamedTuple):
    """The holder that a lease names.

    Attributes:
        holder: the identity of the holder; empty if the lease was given back.
        renewed_at: the last renewal, in Unix seconds by the holder's clock; None if there was none.
    """

    namespace: str
    holder: str
    renewed_at: float | None

    def is_held(self, now: float) -> bool:
        """Return whether a process holds the lease and has renewed it recently."""
        return bool(self.holder) and self.renewed_at is not None and now - self.renewed_at <= STALE_SECONDS


async def holdings(cluster: Cluster, name: str) -> list[LeaseHolding]:
    """Return the holders of the leases with a name in all namespaces, the most recently renewed lease first.

    Raises:
        ClusterError: the leases cannot be listed.
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
        cluster: the cluster that has the lease.
        name: the name of the lease.
        namespace: the namespace of the lease.
        identity: the unique name of this process.
        clock: returns Unix seconds, for the times that are written into the lease.
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
        """Wait until this process holds the lease."""
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
        """Renew the lease periodically; return when it is lost."""
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
        """Give the lease back, so that the next holder need not wait."""
        found = await self._read()
        if found is not None and found["spec"].get("holderIdentity") == self._identity:
            made = dict(found)
            made["spec"] = {**found["spec"], "holderIdentity": ""}
            await self._cluster.replace(kinds.LEASES, made)

    async def _read(self) -> Object | None:
        with missing_is_fine():
            return await self._cluster.get(kinds.LEASES, self._name, self._namespace)
        return None

    def _made(self, before: Object | None) -> Object:
        """Return the lease with this process as holder; it may replace ``before`` only in that version."""
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
