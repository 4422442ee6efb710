"""What a Prometheus has stored of pods: cAdvisor's and DCGM's metrics, by its HTTP API.

It is asked for the values themselves within a stretch of time (an instant query of a range selector), with
the times at which they were scraped: a rate that PromQL computes would not say how old it is.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import httpx2

from paceline.errors import InvalidInput, SourceError
from paceline.sources import cadvisors, gpus
from paceline.sources.answers import Object, parsed, part, parts
from paceline.sources.expositions import Line
from paceline.sources.readings import Pod, Reading, Source

TIMEOUT_SECONDS = 30.0
EXAMPLE = "http://prometheus.monitoring:9090"


class History(NamedTuple):
    """The readings of each pod, the oldest first, and how many values made no sense."""

    readings: Mapping[Pod, tuple[Reading, ...]]
    broken: int


def connected(url: str) -> httpx2.AsyncClient:
    """Return a client of the Prometheus at a URL, which may end in a path and hold ``user:password@``.

    Raises:
        InvalidInput: it is no URL.
    """
    try:
        client = httpx2.AsyncClient(base_url=url, timeout=TIMEOUT_SECONDS)
    except (httpx2.InvalidURL, ValueError) as error:
        raise InvalidInput(f"the URL of Prometheus cannot be read: {error}") from error
    if client.base_url.scheme not in ("http", "https") or not client.base_url.host:
        raise InvalidInput(f"{client.base_url.host or url!r} is no URL", f"an example: {EXAMPLE}")
    return client


async def read(
    client: httpx2.AsyncClient, namespace: str, names: Collection[str], *, at: float, seconds: float
) -> History:
    """Return what was measured of pods in the ``seconds`` before ``at`` (Unix seconds).

    Args:
        client: of the Prometheus (see `connected`).
        namespace: of the pods.
        names: the pods.
        at: the end of the time.
        seconds: how long it is: twice the time between scrapes or more, or there is nothing to take a
            difference of.

    Raises:
        SourceError: it cannot be reached, refuses, or answers no measurements.
    """
    texts = []
    for each in queries(namespace, names, seconds):
        try:
            response = await client.post("api/v1/query", data={"query": each, "time": f"{at:.3f}"})
        except httpx2.HTTPError as error:
            raise SourceError(
                f"Prometheus at {client.base_url.host} does not answer: {error or type(error).__name__}"
            ) from error
        texts.append(response.text)
    return parse(texts)


def queries(namespace: str, names: Collection[str], seconds: float) -> list[str]:
    """Return what is asked in PromQL: of cAdvisor, and of DCGM under both names of its labels."""
    wanted = "|".join(sorted(name.replace(".", r"\.") for name in names))

    def selector(metrics: Collection[str], prefix: str) -> str:
        where = f"{prefix}namespace={_quoted(namespace)},{prefix}pod=~{_quoted(wanted)}"
        return f"{{__name__=~{_quoted('|'.join(sorted(metrics)))},{where}}}[{math.ceil(seconds)}s]"

    return [selector(cadvisors.NAMES, ""), selector(gpus.NAMES, ""), selector(gpus.NAMES, "exported_")]


def parse(texts: Iterable[str]) -> History:
    """Return the readings in answers.

    The last values of all series make the last reading, those before them the one before: each figure has its
    own time, so it does not matter that the metrics of one scrape differ in it.

    Raises:
        SourceError: one is an error, or no range of values.
    """
    scrapes: dict[int, list[Line]] = {}
    broken = 0
    for series in (series for text in texts for series in _matrix(text)):
        for age, value in enumerate(reversed(parts(series, "values"))):
            line = _line(part(series, "metric"), value)
            broken += line is None
            if line is not None:
                scrapes.setdefault(age, []).append(line)
    found: dict[Pod, list[Reading]] = {}
    for _, lines in sorted(scrapes.items(), reverse=True):
        for pod, reading in _readings(lines).items():
            found.setdefault(pod, []).append(reading)
    return History({pod: tuple(readings) for pod, readings in found.items()}, broken)


def _matrix(text: str) -> list[Any]:
    found = parsed(text, "Prometheus")
    if found.get("status") != "success":
        said = found.get("error") or found.get("status")
        raise SourceError(f"Prometheus refused: {said}", f"its URL ends before /api/v1: {EXAMPLE}")
    data = part(found, "data")
    if data.get("resultType") != "matrix":
        raise SourceError(f"Prometheus answered {data.get('resultType')!r}, which is no range of values")
    return parts(data, "result")


def _line(metric: Object, value: object) -> Line | None:
    """Return one value of a series: a pair of a time and a number as text."""
    if not isinstance(value, list) or len(value) != 2:
        return None
    try:
        at, number = map(float, value)
    except (TypeError, ValueError, OverflowError):
        return None
    labels = {str(name): str(each) for name, each in metric.items()}
    return Line(labels.get("__name__", ""), labels, number, at) if math.isfinite(at) else None


def _readings(lines: list[Line]) -> dict[Pod, Reading]:
    found: dict[Pod, Reading] = {}
    of_cpus = [line for line in lines if line.name in cadvisors.NAMES]
    of_gpus = [line for line in lines if line.name in gpus.NAMES]
    for each in cadvisors.readings(of_cpus, Source.PROMETHEUS):
        found[each.pod] = each
    for each in gpus.readings(of_gpus, Source.PROMETHEUS):
        other = found.get(each.pod, each)
        found[each.pod] = dataclasses.replace(
            other, gpu_utilization=each.gpu_utilization, gpu_memory_bytes=each.gpu_memory_bytes
        )
    return found


def _quoted(text: str) -> str:
    """Return a string of PromQL: its escapes are those of Go, of which JSON's are a part."""
    return json.dumps(text)
