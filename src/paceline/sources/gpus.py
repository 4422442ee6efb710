"""Reads what NVIDIA's DCGM exporter measured of the GPUs of pods.

Fields and units: ``etc/default-counters.csv`` of dcgm-exporter. On Kubernetes, the exporter labels a GPU with
the pod that holds it (``DCGM_EXPORTER_KUBERNETES``).
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from paceline.rendering import pods
from paceline.sources import expositions
from paceline.sources.expositions import ApiServer, MetricLine
from paceline.sources.readings import Pod, PodReading, TimedFigure, figure

#: The percentage of time in which a kernel ran, and the used frame buffer in MiB.
UTILIZATION, MEMORY = NAMES = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED")
_MIB = 1 << 20
#: DCGM gives a value near 2^63 for what it cannot measure (``DCGM_INT64_BLANK``).
_BLANK = 2.0**62
#: Selectors of exporter pods, by the labels of NVIDIA's operator and of the exporter's own chart.
SELECTORS = ("app=nvidia-dcgm-exporter", "app.kubernetes.io/name=dcgm-exporter")
_PORT = 9400
#: The namespace in which NVIDIA's operator runs the exporter.
NAMESPACE = "gpu-operator"
#: A node with 16 GPUs, each split into 7 instances, has some hundred lines.
LIMITS_OF_ANSWER = expositions.ExpositionLimits(size_bytes=8 << 20, lines=2_000)

_Lines = dict[tuple[str, ...], TimedFigure]


class Exporter(NamedTuple):
    """A pod that runs DCGM's exporter."""

    pod: Pod
    port: int


def exporter(pod: Mapping[str, Any]) -> Exporter:
    """Return the exporter that runs in a pod of the API, found by one of `SELECTORS`."""
    return Exporter(Pod(pod["metadata"]["namespace"], pod["metadata"]["name"]), _PORT)


async def read(
    server: ApiServer, exporter: Exporter, at: float, pods: Collection[Pod]
) -> dict[Pod, PodReading]:
    """Ask an exporter, through the API server, for readings of the pods on its node.

    Args:
        server: the API server.
        exporter: the exporter.
        at: the time of lines without a time (Unix seconds).
        pods: the pods to read.

    Raises:
        EngineError: the API server refused, does not reach the pod, or the answer is too large.
    """
    namespace, name = (urllib.parse.quote(part, safe="") for part in exporter.pod)
    path = f"/api/v1/namespaces/{namespace}/pods/{name}:{exporter.port}/proxy/metrics"
    return await expositions.gathered(
        _Gathered(), server, path, NAMES, at, pods=pods, limits=LIMITS_OF_ANSWER
    )


def parse(text: str, at: float) -> dict[Pod, PodReading]:
    """Return the readings of replicas' GPUs in an exposition that was requested at ``at`` (Unix seconds).

    If a metric of a GPU occurs twice, the newer line counts.
    """
    return expositions.parsed(_Gathered(), text, NAMES, at)


class _Gathered:
    """Collects the lines about the GPUs of replicas."""

    def __init__(self) -> None:
        self._by_pod: dict[Pod, _Lines] = {}

    def add(self, line: MetricLine) -> None:
        pod = Pod(line.labels.get("namespace", ""), line.labels.get("pod", ""))
        is_of_replica = line.labels.get("container", "") in ("", pods.TRAINING)
        if not pod.name or not is_of_replica or line.value >= _BLANK:
            return
        gpu = line.name, *(line.labels.get(name, "") for name in ("UUID", "gpu", "GPU_I_ID"))
        if any(len(label) > expositions.MAX_LABEL for label in gpu):
            return
        lines = self._by_pod.setdefault(pod, {})
        if gpu not in lines or lines[gpu].at < line.at:
            lines[gpu] = TimedFigure(line.value, line.at)

    def readings(self) -> dict[Pod, PodReading]:
        found = {pod: _reading(lines) for pod, lines in self._by_pod.items()}
        return {pod: reading for pod, reading in found.items() if reading.at is not None}


def _reading(lines: _Lines) -> PodReading:
    busy = [each for gpu, each in lines.items() if gpu[0] == UTILIZATION and 0 <= each.value <= 100]
    used = [each for gpu, each in lines.items() if gpu[0] == MEMORY]
    return PodReading(
        gpu_utilization=_figure(busy, 1 / (100 * len(busy)) if busy else 1),
        gpu_memory_bytes=_figure(used, _MIB),
    )


def _figure(lines: list[TimedFigure], factor: float) -> TimedFigure | None:
    if not lines:
        return None
    return figure(sum(line.value for line in lines) * factor, max(line.at for line in lines))
