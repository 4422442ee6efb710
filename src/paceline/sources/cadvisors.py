"""Reads what cAdvisor in a kubelet measured of pods: ``/metrics/cadvisor``.

Names and meanings: cAdvisor's ``docs/storage/prometheus.md``.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Collection, Mapping
from typing import Any

from paceline.rendering import pods
from paceline.sources import expositions
from paceline.sources.expositions import ApiServer, MetricLine
from paceline.sources.readings import Pod, PodReading, TimedFigure, figure

#: Metrics of a container, and of a pod's network, with the field of `PodReading` for each.
CONTAINER = {
    "container_cpu_usage_seconds_total": "cpu_seconds",
    "container_cpu_cfs_throttled_seconds_total": "throttled_seconds",
    "container_memory_working_set_bytes": "memory_bytes",
    "container_threads": "threads",
}
NETWORK = {
    "container_network_receive_bytes_total": "network_received_bytes",
    "container_network_transmit_bytes_total": "network_sent_bytes",
}
_QUOTA, _PERIOD, _MEMORY_LIMIT = LIMITS = (
    "container_spec_cpu_quota", "container_spec_cpu_period", "container_spec_memory_limit_bytes",
)  # fmt: skip
NAMES = frozenset({*CONTAINER, *NETWORK, *LIMITS})
#: A node's answer may be large, as it has lines for everything that runs there; a replica has some tens.
LIMITS_OF_ANSWER = expositions.ExpositionLimits(size_bytes=64 << 20, lines=8_000)
#: Labels by which a metric of a pod may have several values, which are added up.
_PARTS = "cpu", "interface"

_Lines = dict[str, dict[tuple[str, ...], TimedFigure]]


async def read(server: ApiServer, node: str, at: float, pods: Collection[Pod]) -> dict[Pod, PodReading]:
    """Ask the kubelet of a node, through the API server, for readings of the pods on the node.

    Args:
        server: the API server.
        node: the node.
        at: the time of lines without a time (Unix seconds).
        pods: the pods to read.

    Raises:
        EngineError: the API server refused, does not reach the node, or the answer is too large.
    """
    path = f"/api/v1/nodes/{urllib.parse.quote(node, safe='')}/proxy/metrics/cadvisor"
    return await expositions.gathered(
        _Gathered(), server, path, NAMES, at, pods=pods, limits=LIMITS_OF_ANSWER
    )


def parse(text: str, at: float) -> dict[Pod, PodReading]:
    """Return the readings of replicas' pods in an exposition that was requested at ``at`` (Unix seconds).

    If a metric occurs twice, the newer line counts.
    """
    return expositions.parsed(_Gathered(), text, NAMES, at)


class _Gathered:
    """Collects the lines about the pods of replicas."""

    def __init__(self) -> None:
        self._by_pod: dict[Pod, _Lines] = {}

    def add(self, line: MetricLine) -> None:
        pod = Pod(line.labels.get("namespace", ""), line.labels.get("pod", ""))
        if not pod.name or not (line.name in NETWORK or line.labels.get("container") == pods.TRAINING):
            return
        part = tuple(line.labels.get(name, "") for name in _PARTS)
        if any(len(label) > expositions.MAX_LABEL for label in part):
            return
        parts = self._by_pod.setdefault(pod, {}).setdefault(line.name, {})
        if part not in parts or parts[part].at < line.at:
            parts[part] = TimedFigure(line.value, line.at)

    def readings(self) -> dict[Pod, PodReading]:
        # A pod without container metrics, whose network alone is known, has no replica.
        found = {
            pod: _reading(lines) for pod, lines in self._by_pod.items() if lines.keys() & CONTAINER.keys()
        }
        return {pod: reading for pod, reading in found.items() if reading.at is not None}


def _reading(lines: _Lines) -> PodReading:
    figures: dict[str, Any] = {
        name: _sum(lines.get(metric)) for metric, name in (CONTAINER | NETWORK).items()
    }
    quota, period, memory = (_sum(lines.get(name)) for name in LIMITS)
    return PodReading(
        cpu_limit_cores=quota.value / period.value if quota and period and period.value > 0 else None,
        # 0 means that there is no limit.
        memory_limit_bytes=memory.value if memory and memory.value > 0 else None,
        **figures,
    )


def _sum(parts: Mapping[tuple[str, ...], TimedFigure] | None) -> TimedFigure | None:
    lines = [line for part, line in (parts or {}).items() if "lo" not in part]
    if not lines:
        return None
    return figure(sum(line.value for line in lines), max(line.at for line in lines))
