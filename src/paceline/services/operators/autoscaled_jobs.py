"""Moves cores within running jobs of a cluster; each such job has a thread.

The threads run beside the operator: a failure of one costs only its own turn, and never those of others.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import threading
from pathlib import Path

from paceline.engines.kubernetes import loops
from paceline.engines.kubernetes.clusters import Cluster, Object
from paceline.model.jobs.job_specs import JobSpec
from paceline.services.cluster.jobs import ClusterJobs
from paceline.services.cluster.measurements import ClusterMeasurements
from paceline.services.operators.rounds import Present
from paceline.services.studying.autoscales import SETTLE_SECONDS, Autoscaler
from paceline.services.studying.probes import ProbeTimes

#: The most jobs that are probed at once: each probe measures the others' effects on a shared node.
AT_ONCE = 4
#: How often to look for jobs that ask for autoscaling.
LOOK_SECONDS = 5.0


@dataclasses.dataclass(slots=True, kw_only=True)
class _Scaled:
    """A job that is being autoscaled."""

    over: threading.Event
    thread: threading.Thread


class AutoscaledJobs:
    """Moves cores within the jobs that ask for autoscaling.

    Args:
        cluster: where the jobs are.
        present: the jobs and pods of the cluster.
        store_url: where the operator stores the jobs' measurements; None: the agents are read.
        home: where the operator stores files.
        settle_seconds: how long a job has to train before its first probe.
    """

    def __init__(
        self,
        cluster: Cluster,
        present: Present,
        *,
        store_url: str | None,
        home: Path,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> None:
        self._cluster = cluster
        self._present = present
        self._store_url = store_url
        self._home = home
        self._settle_seconds = settle_seconds
        self._gate = threading.BoundedSemaphore(AT_ONCE)
        self._scaled: dict[str, _Scaled] = {}

    async def run(self) -> None:
        """Look for jobs that ask for autoscaling until cancelled."""
        loop = asyncio.get_running_loop()
        await self._present.wait_until_known()
        try:
            while True:
                self._look(loop)
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            for each in self._scaled.values():
                each.over.set()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start autoscaling for jobs that ask for it, and end it for jobs that no longer do."""
        wanted = {each["metadata"]["uid"]: each for each in self._present.jobs() if self._asks(each)}
        for uid, scaled in list(self._scaled.items()):
            if uid not in wanted:
                scaled.over.set()
            if not scaled.thread.is_alive():
                del self._scaled[uid]
        for uid in wanted.keys() - self._scaled.keys():
            self._scaled[uid] = self._begun(wanted[uid], loop)

    def _asks(self, resource: Object) -> bool:
        spec = self._present.wanted(resource)
        phase = (resource.get("status") or {}).get("phase")
        return isinstance(spec, JobSpec) and spec.autoscale is not None and phase == "running"

    def _begun(self, resource: Object, loop: asyncio.AbstractEventLoop) -> _Scaled:
        over = threading.Event()
        name = resource["metadata"]["name"]
        thread = threading.Thread(
            target=self._look_after, args=(resource, loop, over), name=f"autoscaler-{name}", daemon=True
        )
        thread.start()
        return _Scaled(over=over, thread=thread)

    def _look_after(self, resource: Object, loop: asyncio.AbstractEventLoop, over: threading.Event) -> None:
        measurements = ClusterMeasurements(self._cluster, store_url=self._store_url, home=self._home)
        with contextlib.closing(measurements):
            namespace, name = resource["metadata"]["namespace"], resource["metadata"]["name"]
            jobs = ClusterJobs(self._cluster, namespace, loops.OtherThread(loop), measurements)
            Autoscaler(
                jobs=jobs,
                name=name,
                times=ProbeTimes.of(jobs, most=ProbeTimes().most),
                settle_seconds=self._settle_seconds,
                gate=self._gate,
            ).go(over.is_set)
