"""The operator's HTTP endpoints: its liveness, and its metrics for Prometheus.

The event loop that supervises jobs also answers the requests. If that loop hangs, the operator does not
answer, and Kubernetes ends it because of the failed liveness probe. A library's HTTP server would add threads
or the whole framework of the web page. This server reads one request per connection and limits bytes, seconds
and connections.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus

from prometheus_client import CollectorRegistry, exposition
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from paceline.errors import EngineError
from paceline.services.operators.operators import Operator
from paceline.services.operators.rounds import CollectionRounds

LIVES, FIGURES = "/healthz", "/metrics"
REQUEST_BYTES, REQUEST_SECONDS, CONNECTIONS = 8192, 5.0, 32
_TEXT = "text/plain; charset=utf-8"
_ANSWER = "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n"


class HealthProbes:
    """Answers requests about an operator.

    Args:
        operator: the operator.
        rounds: the rounds that store the replicas' reports; None if reports are not stored.
    """

    def __init__(self, operator: Operator, rounds: CollectionRounds | None) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Figures(operator, rounds))
        self._open = 0

    def figures(self) -> bytes:
        """Return all metrics in Prometheus' format."""
        return exposition.generate_latest(self._registry)

    @contextlib.asynccontextmanager
    async def served(self, host: str | None, port: int) -> AsyncIterator[int]:
        """Serve requests within the block, and yield the port.

        Args:
            host: the address to listen on; None means all addresses.
            port: the port; 0 takes a free port.

        Raises:
            EngineError: the port cannot be opened.
        """
        try:
            server = await asyncio.start_server(
                self._answer, host, port, limit=REQUEST_BYTES, backlog=CONNECTIONS
            )
        except OSError as error:
            where = f"{host or ''}:{port}"
            raise EngineError(f"--listen {where}: {error.strerror or error}", "name another port") from error
        async with server:
            yield server.sockets[0].getsockname()[1]

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            # A client that is too slow, sends too much or disconnects gets no answer; this is not an error.
            with contextlib.suppress(TimeoutError, EOFError, asyncio.LimitOverrunError, ConnectionError):
                async with asyncio.timeout(REQUEST_SECONDS):
                    if self._open <= CONNECTIONS:
                        writer.write(self._page(await reader.readuntil(b"\r\n\r\n")))
                        await writer.drain()
        finally:
            self._open -= 1
            writer.close()

    def _page(self, request: bytes) -> bytes:
        method, path, *_ = [*request.split(b"\r\n", 1)[0].decode("latin-1").split(" "), ""]
        status, kind, body = HTTPStatus.OK, _TEXT, b"ok\n"
        if method not in ("GET", "HEAD"):
            status, body = HTTPStatus.METHOD_NOT_ALLOWED, b"only GET and HEAD\n"
        elif path == FIGURES:
            kind, body = exposition.CONTENT_TYPE_PLAIN_0_0_4, self.figures()
        elif path != LIVES:
            status, body = HTTPStatus.NOT_FOUND, f"there are {LIVES} and {FIGURES}\n".encode()
        head = _ANSWER.format(status.value, status.phrase, kind, len(body)).encode()
        return head if method == "HEAD" else head + body


class _Figures(Collector):
    """Counters of an operator since its start, as metrics."""

    def __init__(self, operator: Operator, rounds: CollectionRounds | None) -> None:
        self._operator = operator
        self._rounds = rounds

    def collect(self) -> Iterator[Metric]:
        """Yield each metric with its current value."""
        counted = self._operator.counters
        yield _counter("reconciliations", "Looks at a job.", counted.reconciliations)
        yield _counter("refusals", "Looks at a job that the API server ended.", counted.refusals)
        yield _counter("failures", "Looks at a job that a fault of the operator ended.", counted.failures)
        unreadable = "Jobs that are left alone, for it cannot be read where they stand."
        yield GaugeMetricFamily("paceline_operator_unreadable_jobs", unreadable, self._operator.unreadable)
        if self._rounds is not None:
            kept = self._rounds.counters
            yield _counter("rounds", "Times that all replicas were asked what they say.", kept.rounds)
            yield _counter("answers", "Answers of replicas.", kept.answers)
            lost = "Replicas that did not answer, and stores that could not be written, each time."
            yield _counter("round_failures", lost, kept.failures)
            lasts = "How long the last round took."
            yield GaugeMetricFamily("paceline_operator_round_seconds", lasts, kept.round_seconds)


def _counter(name: str, meaning: str, value: float) -> Metric:
    return CounterMetricFamily(f"paceline_operator_{name}", meaning, value)
