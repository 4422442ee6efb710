"""What cAdvisor in a kubelet measured of pods: ``/metrics/cadvisor``.

Names and meanings: cAdvisor's ``docs/storage/prometheus.md``. Beyond the kubelet's summary it knows
throttling, threads and limits. The same metrics come out of a Prometheus that scrapes it.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

from paceline.rendering import pods
from paceline.sources import expositions
from paceline.sources.answers import ApiServer, fetched
from paceline.sources.expositions import Line
from paceline.sources.readings import Answer, Figure, Pod, Reading, Source, figure

#: Metrics of a container, and of a pod's network, by the figures of a reading that they are.
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
#: What one metric of a pod may have several values for, which then add up.
_PARTS = "cpu", "interface"

_Lines = dict[str, dict[tuple[str, ...], Line]]


async def read(server: ApiServer, node: str, at: float) -> Answer:
    """Ask the kubelet of a node, through the API server, at a time.

    Raises:
        EngineError: the API server refused, or does not reach the node.
    """
    path = f"/api/v1/nodes/{urllib.parse.quote(node, safe='')}/proxy/metrics/cadvisor"
    return parse(await fetched(server, path), at)


def parse(text: str, at: float) -> Answer:
    """Return what an exposition, asked for at a time (Unix seconds), says of replicas."""
    found, broken = expositions.lines(text, NAMES, at)
    return Answer(readings(found, Source.CADVISOR), broken)


def readings(lines: Iterable[Line], source: Source) -> tuple[Reading, ...]:
    """Return what lines say, one reading a pod; of the same metric said twice the newer line counts."""
    found: dict[Pod, _Lines] = {}
    for line in lines:
        pod = Pod(line.labels.get("namespace", ""), line.labels.get("pod", ""))
        if not pod.name or not (line.name in NETWORK or line.labels.get("container") == pods.TRAINING):
            continue
        which = tuple(line.labels.get(name, "") for name in _PARTS)
        same = found.setdefault(pod, {}).setdefault(line.name, {})
        if which not in same or same[which].at < line.at:
            same[which] = line
    made = (_reading(pod, of_pod, source) for pod, of_pod in found.items())
    return tuple(each for each in made if each.at is not None)


def _reading(pod: Pod, found: _Lines, source: Source) -> Reading:
    if not any(name in found for name in CONTAINER):
        return Reading(pod=pod, source=source)  # not a replica: only its network is known
    figures: dict[str, Any] = {
        name: _sum(found.get(metric)) for metric, name in (CONTAINER | NETWORK).items()
    }
    quota, period, memory = (_sum(found.get(name)) for name in LIMITS)
    return Reading(
        pod=pod,
        source=source,
        cpu_limit_cores=quota.value / period.value if quota and period and period.value > 0 else None,
        # 0 stands for none.
        memory_limit_bytes=memory.value if memory and memory.value > 0 else None,
        **figures,
    )


def _sum(found: Mapping[tuple[str, ...], Line] | None) -> Figure | None:
    given = [line for which, line in (found or {}).items() if "lo" not in which]
    if not given:
        return None
    return figure(sum(line.value for line in given), max(line.at for line in given))
