"""What others than agents measure of pods: every source that may be read, compared with its last reading.

A source that is not there, or may not be read, costs its own turn alone. cAdvisor says all that a kubelet's
summary does, so that is read only from nodes whose cAdvisor cannot be.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

import httpx2

from paceline.engines.kubernetes import kinds, sights
from paceline.engines.kubernetes.clusters import Cluster, Object
from paceline.errors import PacelineError
from paceline.model.roles import ReplicaId
from paceline.model.samples import Sample
from paceline.sources import cadvisors, gpus, kubelets, metrics_servers, prometheuses, readings
from paceline.sources.readings import Pod, Reading, Source

AT_ONCE = 16
#: A source that has not answered by then is asked again the next time.
ANSWER_SECONDS = 15.0
#: How far back a Prometheus is asked: two scrapes of those that scrape each minute.
LOOK_SECONDS = 150.0

Samples = dict[Pod, dict[Source, Sample]]


class OutsideMeasurements:
    """Measures any number of pods of jobs, each time since the last time.

    Args:
        cluster: where the pods are.
        clock: Unix seconds.
        prometheus: a client of a Prometheus (`prometheuses.connected`); None: there is none.
        namespace: the only one that may be looked at; None: all.

    Attributes:
        troubles: what could not be read the last time, and why, by the source and what it was asked of.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Callable[[], float],
        *,
        prometheus: httpx2.AsyncClient | None = None,
        namespace: str | None = None,
    ) -> None:
        self.troubles: dict[str, str] = {}
        self._cluster = cluster
        self._clock = clock
        self._prometheus = prometheus
        self._namespace = namespace
        self._before: dict[tuple[Source, Pod], Reading] = {}
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def measure(self, found: Iterable[Object]) -> Samples:
        """Return the samples of pods, as the API has them, by source; of counters from the second time on.

        What to make of several sources of one pod, and of its agent's samples, says `precedences.joined`.
        """
        self.troubles = {}
        attempts: dict[Pod, tuple[ReplicaId, int]] = {}
        nodes: set[str] = set()
        for each in found:
            attempt, node = sights.attempt_of(each), each["spec"].get("nodeName")
            if attempt is None or node is None:
                continue
            attempts[Pod(each["metadata"]["namespace"], each["metadata"]["name"])] = attempt
            nodes.add(node)
        read = await asyncio.gather(
            *(self._of_node(node) for node in sorted(nodes)),
            self._asked("metrics-server", metrics_servers.read(self._cluster, self._namespace)),
            self._of_gpus(nodes),
        )
        samples = self._samples([reading for part in read for reading in part], attempts)
        if self._prometheus is not None:
            await self._add_stored(self._prometheus, attempts, samples)
        return samples

    def _samples(self, found: Iterable[Reading], attempts: Mapping[Pod, tuple[ReplicaId, int]]) -> Samples:
        samples: Samples = {}
        for after in found:
            if after.pod not in attempts:
                continue
            replica, attempt = attempts[after.pod]
            before = self._before.get((after.source, after.pod))
            made = readings.sample(before, after, replica=replica, attempt=attempt)
            if before is None or made is not None:
                self._before[after.source, after.pod] = after
            if made is not None:
                samples.setdefault(after.pod, {})[after.source] = made
        self._before = {key: each for key, each in self._before.items() if key[1] in attempts}
        return samples

    async def _of_node(self, node: str) -> tuple[Reading, ...]:
        found = await self._asked(f"cadvisor of {node}", cadvisors.read(self._cluster, node, self._clock()))
        if f"cadvisor of {node}" not in self.troubles:
            return found
        return await self._asked(f"kubelet of {node}", kubelets.read(self._cluster, node))

    async def _of_gpus(self, nodes: set[str]) -> tuple[Reading, ...]:
        exporters = []
        for selector in gpus.SELECTORS:
            try:
                listing = await self._cluster.list(kinds.PODS, namespace=self._namespace, selector=selector)
            except PacelineError as error:
                self.troubles["dcgm"] = error.message
                continue
            exporters += [
                each for each in listing.objects if (each.get("spec") or {}).get("nodeName") in nodes
            ]
        found = await asyncio.gather(
            *(
                self._asked(
                    f"dcgm on {each['spec']['nodeName']}",
                    gpus.read(self._cluster, gpus.exporter(each), self._clock()),
                )
                for each in exporters
            )
        )
        return tuple(reading for part in found for reading in part)

    async def _asked(
        self, what: str, answer: Awaitable[readings.Answer | kubelets.Summary]
    ) -> tuple[Reading, ...]:
        try:
            async with self._gate, asyncio.timeout(ANSWER_SECONDS):
                return (await answer).readings
        except TimeoutError:
            self.troubles[what] = f"it has not answered for {ANSWER_SECONDS:.0f} s"
        except PacelineError as error:
            self.troubles[what] = error.message
        return ()

    async def _add_stored(
        self, client: httpx2.AsyncClient, attempts: Mapping[Pod, tuple[ReplicaId, int]], samples: Samples
    ) -> None:
        """Add what a Prometheus has last stored of each pod: it has the reading before that, too."""
        names: dict[str, list[str]] = {}
        for pod in attempts:
            names.setdefault(pod.namespace, []).append(pod.name)
        for namespace, within in names.items():
            try:
                history = await prometheuses.read(
                    client, namespace, within, at=self._clock(), seconds=LOOK_SECONDS
                )
            except PacelineError as error:
                self.troubles[f"prometheus for {namespace}"] = error.message
                continue
            for pod, found in history.readings.items():
                before = self._before.get((Source.PROMETHEUS, pod))
                if (
                    pod not in attempts
                    or len(found) < 2
                    or (before is not None and before.at == found[-1].at)
                ):
                    continue
                self._before[Source.PROMETHEUS, pod] = found[-1]
                replica, attempt = attempts[pod]
                made = readings.sample(found[-2], found[-1], replica=replica, attempt=attempt)
                if made is not None:
                    samples.setdefault(pod, {})[Source.PROMETHEUS] = made
