"""Reads the lines of a few metrics from text in Prometheus' exposition format 0.0.4.

prometheus-client parses the format, but takes 0.1 ms for a line. A node's cAdvisor has thousands of lines, so
only lines with a wanted name are passed to it; and one by one, so that a broken line affects only itself. An
answer is read as it arrives, and other lines are not kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from prometheus_client import parser

from paceline.errors import EngineError
from paceline.model import outside
from paceline.sources.readings import Pod, PodReading

#: The longest line that is parsed: the parser's time grows with the square of a line's length, and real lines
#: have some hundred characters.
MAX_LINE = 4096
#: The longest valid label: no label of a pod, container, GPU or interface is longer.
MAX_LABEL = 253
#: Finds the pod of a line, as names of pods need no escapes: so lines of other pods need not be parsed.
_POD = re.compile(r'[{,][ \t]*pod[ \t]*=[ \t]*"([^"\\]*)"')


class ApiServer(Protocol):
    """The part of a cluster that is needed here; `engines.kubernetes.clusters.Cluster` implements it."""

    def stream(self, path: str, *, limit_bytes: int) -> AsyncGenerator[bytes]:
        """Yield the answer of the API server at a path in small pieces; more than the limit is refused."""


class ExpositionLimits(NamedTuple):
    """The limits of an answer: bytes on the wire, and lines about the pods that were asked for."""

    size_bytes: int
    lines: int


class MetricLine(NamedTuple):
    """One value of a metric, with its labels and time (Unix seconds)."""

    name: str
    labels: Mapping[str, str]
    value: float
    at: float


class Gathered(Protocol):
    """Collects lines about the pods of replicas."""

    def add(self, line: MetricLine) -> None:
        """Add a line."""

    def readings(self) -> dict[Pod, PodReading]:
        """Return the reading of each pod."""


async def gathered(
    into: Gathered,
    server: ApiServer,
    path: str,
    names: Collection[str],
    at: float,
    *,
    pods: Collection[Pod],
    limits: ExpositionLimits,
) -> dict[Pod, PodReading]:
    """Return the readings of some pods, from the lines of some metrics at a path of the API server.

    Raises:
        EngineError: the API server refused, or the answer is too large.
    """
    async with contextlib.aclosing(_fetched(server, path, names, at, pods=pods, limits=limits)) as found:
        async for line in found:
            into.add(line)
    return into.readings()


def parsed(into: Gathered, text: str, names: Collection[str], at: float) -> dict[Pod, PodReading]:
    """Return the readings from some metrics of an exposition that was requested at ``at`` (Unix seconds)."""
    for line in lines(text, names, at):
        into.add(line)
    return into.readings()


async def _fetched(
    server: ApiServer,
    path: str,
    names: Collection[str],
    at: float,
    *,
    pods: Collection[Pod],
    limits: ExpositionLimits,
) -> AsyncGenerator[MetricLine]:
    """Yield the lines of some metrics, and only of some pods, at a path of the API server.

    Raises:
        EngineError: the API server refused, or the answer is too large.
    """
    called, count = {pod.name for pod in pods}, 0
    async with contextlib.aclosing(_texts(server, path, limits)) as texts:
        async for text in texts:
            for line in lines(text, names, at, called):
                if Pod(line.labels.get("namespace", ""), line.labels.get("pod", "")) not in pods:
                    continue
                count += 1
                if count > limits.lines:
                    raise EngineError(f"{path} has more than {limits.lines} lines of the pods of this node")
                yield line


async def _texts(server: ApiServer, path: str, limits: ExpositionLimits) -> AsyncGenerator[str]:
    """Yield an answer in pieces that end at line ends; a line longer than `MAX_LINE` may be left out."""
    rest = bytearray()
    is_torn = False
    async with contextlib.aclosing(server.stream(path, limit_bytes=limits.size_bytes)) as pieces:
        async for piece in pieces:
            await asyncio.sleep(0)  # A malicious answer takes long to parse: let other tasks run.
            rest += piece
            whole = rest.rfind(b"\n") + 1
            if whole:
                begin = rest.find(b"\n") + 1 if is_torn else 0
                yield rest[begin:whole].decode(errors="replace")
                del rest[:whole]
                is_torn = False
            if len(rest) > MAX_LINE:
                rest.clear()
                is_torn = True
    if not is_torn:
        yield rest.decode(errors="replace")


def lines(
    text: str, names: Collection[str], at: float, called: Collection[str] | None = None
) -> Iterable[MetricLine]:
    """Yield the lines of some metrics; malformed lines are skipped.

    Args:
        text: the exposition.
        names: the names of the metrics.
        at: the time of lines without a time: when the exposition was requested.
        called: the names of the pods whose lines are wanted; None: all lines.
    """
    for named in _lines_of(frozenset(names)).finditer(text):
        line = named[0].strip()
        found = _line(line, at) if called is None or _is_of(line, called) else None
        if found is not None:
            yield found


@functools.cache
def _lines_of(names: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern that finds the lines of some metrics: an answer may have a million others."""
    return re.compile(rf"^[^\S\n]*(?:{'|'.join(map(re.escape, sorted(names)))})(?=[{{ \t]).*", re.MULTILINE)


def _is_of(line: str, called: Collection[str]) -> bool:
    return any(name in called for name in _POD.findall(line[:MAX_LINE]))


def _line(line: str, at: float) -> MetricLine | None:
    if len(line) > MAX_LINE:
        return None
    try:
        (family,) = parser.text_string_to_metric_families(line)
        (sample,) = family.samples
        time = at if sample.timestamp is None else float(sample.timestamp)
        value = float(sample.value)
    except (ValueError, IndexError, OverflowError):
        return None
    return MetricLine(sample.name, sample.labels, value, time) if outside.is_moment(time) else None
