"""What NVIDIA's DCGM exporter measured of the GPUs of pods.

Fields and units: ``etc/default-counters.csv`` of dcgm-exporter. It labels a GPU with the pod that holds it
when it runs on Kubernetes (``DCGM_EXPORTER_KUBERNETES``). A Prometheus that scrapes it has these labels as
``exported_pod``, because ``pod`` is the exporter itself there.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from paceline.rendering import pods
from paceline.sources import expositions
from paceline.sources.answers import ApiServer, fetched
from paceline.sources.expositions import Line
from paceline.sources.readings import Answer, Figure, Pod, Reading, Source, figure

#: Percent of the time in which a kernel ran; MiB of frame buffer.
UTILIZATION, MEMORY = NAMES = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED")
_MIB = 1 << 20
#: DCGM gives a value near 2^63 for what it cannot measure (``DCGM_INT64_BLANK``).
_BLANK = 2.0**62
#: How exporters are labelled: by NVIDIA's operator, by the exporter's own chart.
SELECTORS = ("app=nvidia-dcgm-exporter", "app.kubernetes.io/name=dcgm-exporter")
_PORT = 9400


class Exporter(NamedTuple):
    """A pod that runs DCGM's exporter."""

    pod: Pod
    port: int


def exporter(pod: Mapping[str, Any]) -> Exporter:
    """Return the exporter in a pod, as the API has it, that one of `SELECTORS` found."""
    return Exporter(Pod(pod["metadata"]["namespace"], pod["metadata"]["name"]), _PORT)


async def read(server: ApiServer, exporter: Exporter, at: float) -> Answer:
    """Ask an exporter, through the API server, at a time.

    Raises:
        EngineError: the API server refused, or does not reach the pod.
    """
    namespace, name = (urllib.parse.quote(each, safe="") for each in exporter.pod)
    path = f"/api/v1/namespaces/{namespace}/pods/{name}:{exporter.port}/proxy/metrics"
    return parse(await fetched(server, path), at)


def parse(text: str, at: float) -> Answer:
    """Return what an exposition, asked for at a time (Unix seconds), says of replicas."""
    found, broken = expositions.lines(text, NAMES, at)
    return Answer(readings(found, Source.DCGM), broken)


def readings(lines: Iterable[Line], source: Source) -> tuple[Reading, ...]:
    """Return what lines say, one reading a pod; of the same GPU said twice the newer line counts."""
    found: dict[Pod, dict[tuple[str, str], Line]] = {}
    for line in lines:
        pod = Pod(_label(line, "namespace"), _label(line, "pod"))
        if not pod.name or _label(line, "container") not in ("", pods.TRAINING) or line.value >= _BLANK:
            continue
        which = line.name, ",".join(line.labels.get(name, "") for name in ("UUID", "gpu", "GPU_I_ID"))
        same = found.setdefault(pod, {})
        if which not in same or same[which].at < line.at:
            same[which] = line
    made = (_reading(pod, list(same.values()), source) for pod, same in found.items())
    return tuple(each for each in made if each.at is not None)


def _reading(pod: Pod, found: list[Line], source: Source) -> Reading:
    busy = [line for line in found if line.name == UTILIZATION and 0 <= line.value <= 100]
    used = [line for line in found if line.name == MEMORY]
    return Reading(
        pod=pod,
        source=source,
        gpu_utilization=_figure(busy, 1 / (100 * len(busy)) if busy else 1),
        gpu_memory_bytes=_figure(used, _MIB),
    )


def _figure(lines: list[Line], factor: float) -> Figure | None:
    if not lines:
        return None
    return figure(sum(line.value for line in lines) * factor, max(line.at for line in lines))


def _label(line: Line, name: str) -> str:
    return line.labels.get(f"exported_{name}") or line.labels.get(name, "")
