"""Metrics as text: Prometheus' exposition format 0.0.4, of which the lines of a few names are read.

prometheus-client knows the format, but takes 0.1 ms for a line. A node's cAdvisor has thousands of lines, so
only those with one of the names are given to it; and one by one, so that a broken line costs that line alone.
An answer is read as it comes: of what is in no line that was asked for nothing is kept.
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

#: The parser's time grows with the square of a line's length; real lines have some hundred characters.
MAX_LINE = 4096
#: A label that is longer than those of any pod, container, GPU or interface is none of them.
MAX_LABEL = 253
#: Names of pods need no escapes, so a line of another pod need not be parsed.
_POD = re.compile(r'[{,][ \t]*pod[ \t]*=[ \t]*"([^"\\]*)"')


class ApiServer(Protocol):
    """What is needed of a cluster: `engines.kubernetes.clusters.Cluster` has it."""

    def stream(self, path: str, *, limit_bytes: int) -> AsyncGenerator[bytes]:
        """Yield what the API server has at a path, in small pieces; more than the limit is refused."""


class ExpositionLimits(NamedTuple):
    """What an answer may be: so many bytes on the wire, and so many lines of the pods that were asked for."""

    size_bytes: int
    lines: int


class MetricLine(NamedTuple):
    """One value of a metric, with its labels and time (Unix seconds)."""

    name: str
    labels: Mapping[str, str]
    value: float
    at: float


class Gathered(Protocol):
    """What lines have said so far of the pods of replicas."""

    def add(self, line: MetricLine) -> None:
        """Take in a line."""

    def readings(self) -> dict[Pod, PodReading]:
        """Return what is known of each pod."""


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
    """Return what the lines of some metrics, of some pods alone, say that the API server has at a path.

    Raises:
        EngineError: the API server refused, or the answer is too large.
    """
    async with contextlib.aclosing(_fetched(server, path, names, at, pods=pods, limits=limits)) as found:
        async for line in found:
            into.add(line)
    return into.readings()


def parsed(into: Gathered, text: str, names: Collection[str], at: float) -> dict[Pod, PodReading]:
    """Return what the lines of some metrics say in an exposition that was asked for at a time."""
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
    """Yield the lines of some metrics, of some pods alone, that the API server has at a path.

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
    """Yield an answer in pieces that end where a line does; a line that is too long to be one is left out."""
    rest = bytearray()
    is_torn = False
    async with contextlib.aclosing(server.stream(path, limit_bytes=limits.size_bytes)) as pieces:
        async for piece in pieces:
            await asyncio.sleep(0)  # Lines of a liar take their time to read: others have their turn.
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
    """Yield the lines of some metrics; a line that makes no sense is passed over.

    Args:
        text: the exposition.
        names: the metrics.
        at: the time of lines that do not say theirs: when they were asked for.
        called: the names of the pods whose lines are meant; None: all lines are.
    """
    for named in _lines_of(frozenset(names)).finditer(text):
        line = named[0].strip()
        found = _line(line, at) if called is None or _is_of(line, called) else None
        if found is not None:
            yield found


@functools.cache
def _lines_of(names: frozenset[str]) -> re.Pattern[str]:
    """Return what finds the lines of some metrics: an answer may have a million others."""
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
