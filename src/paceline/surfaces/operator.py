"""The operator process: waits for the lease, then looks after a cluster's jobs until it loses the lease."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
import signal
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Coroutine, Sequence
from pathlib import Path

from paceline.engines.kubernetes import leases, versions
from paceline.engines.kubernetes.clients import RealCluster
from paceline.engines.kubernetes.clusters import ClusterError, Object
from paceline.engines.kubernetes.leases import Lease
from paceline.errors import EngineError, InvalidInput
from paceline.model.jobs.job_specs import JobSpec
from paceline.rendering.surroundings import AgentSetup
from paceline.services.bounded_readers import MOST_LEVELS, BoundedReader
from paceline.services.operators import reconcilers
from paceline.services.operators.autoscaled_jobs import AutoscaledJobs
from paceline.services.operators.operators import Operator
from paceline.services.operators.rounds import CollectionRounds
from paceline.surfaces.probes import HealthProbes

log = logging.getLogger("paceline.operator")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """Where the operator stores the replicas' reports and output.

    Attributes:
        store_url: the store for samples, step reports and events.
        home: the folder for output.
        seconds: how long they are kept after the end of a job whose resource is gone.
    """

    store_url: str
    home: Path
    seconds: float


async def run(
    *,
    context: str | None,
    namespaces: Sequence[str] | None,
    agent: AgentSetup,
    keeping: Keeping | None,
    exporters: str | None,
    listen: tuple[str | None, int] | None = None,
) -> None:
    """Look after jobs until SIGTERM or SIGINT.

    Args:
        context: a context of the kubeconfig; None means the current one, or the cluster around this process.
        namespaces: look after only these namespaces; None means all.
        agent: how agents come into pods, and who may ask them. Where the cluster has no image volumes, the
            agent is copied.
        keeping: where samples and output of replicas are stored; None means nowhere.
        exporters: the namespace of DCGM's exporters; None means that none are read.
        listen: the address and port for probes (`surfaces.probes`); None means that none are answered.

    Raises:
        EngineError: there is no cluster, the lease is lost to another operator, or the port is taken.
    """
    sys.setrecursionlimit(MOST_LEVELS)
    cluster = RealCluster(context)
    identity = f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
    # An operator of one namespace has its lease there, as before several namespaces were possible.
    where = namespaces[0] if namespaces and len(namespaces) == 1 else cluster.namespace
    lease = Lease(cluster, leases.OPERATOR, where, identity=identity, clock=time.time)
    reader = BoundedReader(reconcilers.wanted)
    read = functools.partial(_read, reader)
    if agent.files is not None and not await _mounts_images(cluster):
        agent = dataclasses.replace(agent, files=None)
    operator = Operator(cluster, agent=agent, clock=time.time, namespaces=namespaces, read=read)
    rounds = None
    if keeping is not None:
        rounds = CollectionRounds(
            cluster, operator, store_url=keeping.store_url, home=keeping.home, clock=time.time,
            keep_seconds=keeping.seconds, exporters=exporters,
        )  # fmt: skip
    autoscaled = AutoscaledJobs(
        cluster,
        operator,
        store_url=None if keeping is None else keeping.store_url,
        home=Path(tempfile.gettempdir()) if keeping is None else keeping.home,
    )
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    try:
        async with contextlib.AsyncExitStack() as stack:
            if listen is not None:
                await stack.enter_async_context(HealthProbes(operator, rounds).served(*listen))
            log.info("%s waits for its turn in %s", identity, where)
            if not await _first(stopped.wait(), lease.acquire()):
                return
            log.info("%s looks after the jobs of %s", identity, ", ".join(namespaces or ["all namespaces"]))
            beside = [autoscaled.run(), *([] if rounds is None else [rounds.run()])]
            if await _first(stopped.wait(), lease.hold(), operator.run(), *beside):
                raise EngineError("the lease is lost: another operator may have taken over")
            with contextlib.suppress(ClusterError):
                await lease.release()
    finally:
        log.info("it ends: %s %s", operator.counters, rounds.counters if rounds else "")
        reader.close()
        await cluster.close()


async def _mounts_images(cluster: RealCluster) -> bool:
    """Return whether pods of the cluster can mount images; if it does not answer, they cannot."""
    try:
        version = await versions.of(cluster)
    except ClusterError as error:
        log.warning("init containers copy the agent, for the version of the cluster is unknown: %s", error)
        return False
    if not version.is_supported:
        supported = versions.supported_text()
        log.warning(
            "Kubernetes %s: this Paceline is tested on %s, and not on this one", version.text, supported
        )
    has_image_volumes = version.has(versions.IMAGE_VOLUMES)
    if not has_image_volumes:
        log.info("init containers copy the agent, for Kubernetes %s has no image volumes", version.text)
    return has_image_volumes


def _read(reader: BoundedReader[Object, JobSpec | str], resource: Object) -> JobSpec | str:
    """Return the job that a resource asks for, or what is wrong with it; reading has limits."""
    try:
        return reader.read({**resource, "status": None})
    except InvalidInput as error:
        return error.message


async def _first(first: Coroutine[None, None, object], *others: Coroutine[None, None, object]) -> bool:
    """Wait until one of several coroutines ends, and cancel the rest; return whether the first did not end.

    If a coroutine raised an exception, it is raised here.
    """
    tasks = [asyncio.ensure_future(each) for each in (first, *others)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        return tasks[0] not in done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
