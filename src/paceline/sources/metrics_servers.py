"""What metrics-server says of pods: CPU over its window and memory, as ``kubectl top`` shows them.

Fields are those of ``k8s.io/metrics/pkg/apis/metrics/v1beta1``.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping

from paceline.model import quantities
from paceline.rendering import labels, pods
from paceline.sources.answers import ApiServer, fetched, moment, parsed, part, parts
from paceline.sources.readings import Answer, Figure, Pod, Reading, Source, figure

_GROUP = "/apis/metrics.k8s.io/v1beta1"


async def read(server: ApiServer, namespace: str | None = None) -> Answer:
    """Ask for the pods of Paceline's jobs, in one namespace or in all.

    Raises:
        SourceError: the answer is no list of metrics.
        EngineError: the API server refused, or there is no metrics-server (`ClusterError.is_missing`).
    """
    where = "" if namespace is None else f"/namespaces/{urllib.parse.quote(namespace, safe='')}"
    selector = urllib.parse.quote(labels.JOB, safe="")
    return parse(await fetched(server, f"{_GROUP}{where}/pods?labelSelector={selector}"))


def parse(text: str) -> Answer:
    """Return what a ``PodMetricsList`` says of replicas.

    Raises:
        SourceError: the text is no JSON object.
    """
    readings, broken = [], 0
    for item in parts(parsed(text, "metrics-server"), "items"):
        for container in parts(item, "containers"):
            if not isinstance(container, Mapping) or container.get("name") != pods.TRAINING:
                continue
            read = _reading(item, container)
            broken += read is None
            if read is not None:
                readings.append(read)
    return Answer(tuple(readings), broken)


def _reading(item: object, container: object) -> Reading | None:
    assert isinstance(item, Mapping)
    metadata, usage = part(item, "metadata"), part(container, "usage")
    namespace, name = metadata.get("namespace"), metadata.get("name")
    at, window = moment(item.get("timestamp")), _seconds(item.get("window"))
    if not (isinstance(namespace, str) and isinstance(name, str)) or at is None or window is None:
        return None
    cpu, memory = _quantity(usage.get("cpu"), at), _quantity(usage.get("memory"), at)
    if cpu is None and memory is None:
        return None
    return Reading(
        pod=Pod(namespace, name),
        source=Source.METRICS_SERVER,
        cpu_cores=cpu,
        memory_bytes=memory,
        window_seconds=window,
    )


def _quantity(text: object, at: float) -> Figure | None:
    try:
        return figure(float(quantities.parse_quantity(str(text))), at)
    except (ValueError, OverflowError):
        return None


def _seconds(text: object) -> float | None:
    try:
        seconds = quantities.parse_seconds(str(text))
    except (ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None
