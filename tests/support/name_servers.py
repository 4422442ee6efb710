"""The names of pods under headless services, for a cluster that has no name server of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

from dnslib import QTYPE, RR, A, DNSRecord
from dnslib.server import BaseResolver, DNSLogger, DNSServer

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clients import RealCluster
from paceline.engines.kubernetes.clusters import Object
from paceline.engines.kubernetes.mirrors import Mirror


class _Pods(BaseResolver):
    """Answers ``HOST.SERVICE.NAMESPACE.svc`` by the pod of that host name, ready or not."""

    def __init__(self) -> None:
        #: By name: the pod that has it now, and its address.
        self._addresses: dict[str, tuple[str, str]] = {}

    def note(self, pod: Object) -> None:
        spec, status = pod["spec"], pod.get("status") or {}
        if not spec.get("subdomain"):
            return
        uid, name = pod["metadata"]["uid"], f"{spec['hostname']}.{spec['subdomain']}"
        name = f"{name}.{pod['metadata']['namespace']}".lower()
        is_over = status.get("phase") in ("Succeeded", "Failed") or "deletionTimestamp" in pod["metadata"]
        if status.get("podIP") and not is_over:
            self._addresses[name] = uid, status["podIP"]
        elif self._addresses.get(name, ("",))[0] == uid:
            del self._addresses[name]

    def resolve(self, request: DNSRecord, handler: object) -> DNSRecord:
        reply = request.reply()
        name = str(request.q.qname).lower()
        found = self._addresses.get(".".join(name.split(".")[:3])) if ".svc." in name else None
        if found is not None and request.q.qtype in (QTYPE.A, QTYPE.ANY):
            reply.add_answer(RR(request.q.qname, QTYPE.A, rdata=A(found[1]), ttl=0))
        return reply


@contextlib.contextmanager
def name_server(address: str) -> Iterator[None]:
    """Answer at an address as long as the block lasts."""
    pods, ends = _Pods(), threading.Event()
    follower = threading.Thread(target=lambda: asyncio.run(_follow(pods, ends)), daemon=True)
    server = DNSServer(pods, address=address, port=53, logger=DNSLogger("-request,-reply,-truncated"))
    follower.start()
    server.start_thread()
    try:
        yield
    finally:
        ends.set()
        follower.join()
        server.stop()
        server.server.server_close()


async def _follow(pods: _Pods, ends: threading.Event) -> None:
    cluster = RealCluster()
    following = asyncio.ensure_future(Mirror(cluster, kinds.PODS, on_change=pods.note).run())
    try:
        while not ends.is_set():
            await asyncio.sleep(0.2)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await cluster.close()
