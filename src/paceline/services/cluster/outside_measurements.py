"""Measures pods from outside, where their agents are silent: with cAdvisor, and GPUs with DCGM.

The two measure different things, so their measurements of a pod are merged into one reading. If a node or an
exporter does not answer, or may not be asked, only its own pods go without a reading.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

from paceline.engines.kubernetes import kinds, pod_states
from paceline.engines.kubernetes.clusters import Cluster, Object
from paceline.errors import PacelineError
from paceline.model.measures.samples import Sample
from paceline.model.roles import ReplicaId
from paceline.sources import cadvisors, gpus, readings
from paceline.sources.readings import Pod, PodReading

AT_ONCE = 16
#: A node or exporter that has not answered within this time is asked again at the next `measure`.
ANSWER_SECONDS = 15.0


class OutsideMeasurements:
    """Measures any number of pods of jobs, each over the time since its last reading.

    Args:
        cluster: where the pods are.
        clock: Unix seconds.
        exporters: the only namespace whose pods are trusted as DCGM exporters; None: no pod is trusted. An
            exporter is trusted only for the pods of its own node.

    Attributes:
        troubles: the error messages of the last `measure`, by the node or exporter that was asked.
    """

    def __init__(self, cluster: Cluster, clock: Callable[[], float], *, exporters: str | None) -> None:
        self.troubles: dict[str, str] = {}
        self._cluster = cluster
        self._clock = clock
        self._exporters = exporters
        self._before: dict[Pod, PodReading] = {}
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def measure(self, pods: Iterable[Object]) -> dict[Pod, Sample]:
        """Return a sample of each of the given pods that was read before and has a newer reading now."""
        self.troubles = {}
        attempts: dict[Pod, tuple[ReplicaId, int]] = {}
        nodes: dict[str, set[Pod]] = {}
        for pod in pods:
            attempt, node = pod_states.attempt_of(pod), pod["spec"].get("nodeName")
            if attempt is None or node is None:
                continue
            key = Pod(pod["metadata"]["namespace"], pod["metadata"]["name"])
            attempts[key] = attempt
            nodes.setdefault(node, set()).add(key)
        return self._samples(await self._read(nodes), attempts)

    def _samples(
        self, latest: dict[Pod, PodReading], attempts: dict[Pod, tuple[ReplicaId, int]]
    ) -> dict[Pod, Sample]:
        samples: dict[Pod, Sample] = {}
        for pod in latest.keys() & attempts.keys():
            replica, attempt = attempts[pod]
            before = self._before.setdefault(pod, latest[pod])
            sample = readings.sample(before, latest[pod], replica=replica, attempt=attempt)
            if sample is not None:
                samples[pod], self._before[pod] = sample, latest[pod]
        self._before = {pod: reading for pod, reading in self._before.items() if pod in attempts}
        return samples

    async def _read(self, nodes: Mapping[str, Collection[Pod]]) -> dict[Pod, PodReading]:
        of_nodes, of_gpus = await asyncio.gather(
            asyncio.gather(*(self._of_node(node, nodes[node]) for node in sorted(nodes))),
            self._of_gpus(nodes),
        )
        latest = {pod: reading for answer in of_nodes for pod, reading in answer.items()}
        for pod, gpu in ((pod, gpu) for answer in of_gpus for pod, gpu in answer.items()):
            latest[pod] = dataclasses.replace(
                latest.get(pod, gpu),
                gpu_utilization=gpu.gpu_utilization,
                gpu_memory_bytes=gpu.gpu_memory_bytes,
            )
        return latest

    async def _of_node(self, node: str, pods: Collection[Pod]) -> dict[Pod, PodReading]:
        answer = cadvisors.read(self._cluster, node, self._clock(), pods)
        return await self._answer(f"cadvisor of {node}", answer)

    async def _of_gpus(self, nodes: Mapping[str, Collection[Pod]]) -> list[dict[Pod, PodReading]]:
        if self._exporters is None:
            return []
        exporters: list[Object] = []
        for selector in gpus.SELECTORS:
            try:
                listing = await self._cluster.list(kinds.PODS, namespace=self._exporters, selector=selector)
            except PacelineError as error:
                self.troubles["dcgm"] = error.message
                continue
            exporters += [pod for pod in listing.objects if (pod.get("spec") or {}).get("nodeName") in nodes]
        return await asyncio.gather(
            *(
                self._answer(
                    f"dcgm on {pod['spec']['nodeName']}",
                    gpus.read(
                        self._cluster, gpus.exporter(pod), self._clock(), nodes[pod["spec"]["nodeName"]]
                    ),
                )
                for pod in exporters
            )
        )

    async def _answer(self, asked: str, answer: Awaitable[dict[Pod, PodReading]]) -> dict[Pod, PodReading]:
        try:
            async with self._gate, asyncio.timeout(ANSWER_SECONDS):
                return await answer
        except TimeoutError:
            self.troubles[asked] = f"it has not answered for {ANSWER_SECONDS:.0f} s"
        except PacelineError as error:
            self.troubles[asked] = error.message
        return {}
