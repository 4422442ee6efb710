"""Metrics as text: Prometheus' exposition format 0.0.4, of which the lines of a few names are read.

prometheus-client knows the format, but takes 0.1 ms for a line. A node's cAdvisor has thousands of lines, so
only those with one of the names are given to it; and one by one, so that a broken line costs that line alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

from prometheus_client import parser

from paceline.model import outside

#: The parser's time grows with the square of a line's length; real lines have some hundred characters.
MAX_LINE = 8192
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*(?=[{ \t])")


class ApiServer(Protocol):
    """What is needed of a cluster: `engines.kubernetes.clusters.Cluster` has it."""

    async def read(self, path: str) -> bytes:
        """Return what the API server has at a path."""


class Line(NamedTuple):
    """One value of a metric, with its labels and time (Unix seconds)."""

    name: str
    labels: Mapping[str, str]
    value: float
    at: float


async def fetched(server: ApiServer, path: str) -> str:
    """Return what the API server has at a path, as text."""
    return (await server.read(path)).decode(errors="replace")


def lines(text: str, names: Collection[str], at: float) -> list[Line]:
    """Return the lines of some metrics; a line that makes no sense is passed over.

    Args:
        text: the exposition.
        names: the metrics.
        at: the time of lines that do not say theirs: when they were asked for.
    """
    named = (
        line for line in map(str.strip, text.split("\n")) if (name := _NAME.match(line)) and name[0] in names
    )
    return [line for line in (_line(each, at) for each in named) if line is not None]


def _line(line: str, at: float) -> Line | None:
    if len(line) > MAX_LINE:
        return None
    try:
        (family,) = parser.text_string_to_metric_families(line)
        (sample,) = family.samples
        time = at if sample.timestamp is None else float(sample.timestamp)
        value = float(sample.value)
    except (ValueError, IndexError, OverflowError):
        return None
    return Line(sample.name, sample.labels, value, time) if outside.is_moment(time) else None
