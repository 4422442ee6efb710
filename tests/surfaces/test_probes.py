"""What an operator answers by HTTP, and what it lets no client do to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from prometheus_client import parser
from support.memory_clusters import MemoryCluster

from paceline.errors import EngineError
from paceline.rendering.surroundings import AgentSetup
from paceline.services.operators.operators import Operator
from paceline.surfaces import probes
from paceline.surfaces.probes import HealthProbes


def served(test: Callable[[int], Awaitable[None]]) -> None:
    """Let a test ask an operator that has looked at jobs twice, and leaves one alone."""

    async def run() -> None:
        operator = Operator(MemoryCluster(time.time), agent=AgentSetup(image=None), clock=time.time)
        operator.counters.reconciliations = 2
        operator._reconciler._unreadable["uid"] = "its version is 2"
        async with HealthProbes(operator, None).served("127.0.0.1", 0) as port:
            await test(port)

    asyncio.run(run())


async def answer(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        await writer.drain()
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def test_it_says_that_it_lives_and_what_has_happened() -> None:
    async def test(port: int) -> None:
        assert (await answer(port, get("/healthz"))).startswith(b"HTTP/1.1 200 OK\r\n")
        head, _, body = (await answer(port, get("/metrics"))).partition(b"\r\n\r\n")
        assert f"Content-Length: {len(body)}".encode() in head
        found = {
            sample.name: sample.value
            for family in parser.text_string_to_metric_families(body.decode())
            for sample in family.samples
        }
        assert found["paceline_operator_reconciliations_total"] == 2
        assert found["paceline_operator_unreadable_jobs"] == 1

    served(test)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get("/other"), b"404"),
        (get("/metrics/"), b"404"),
        (b"POST /healthz HTTP/1.1\r\n\r\n", b"405"),
        (b"\xff\x00\r\n\r\n", b"405"),
        (b"\r\n\r\n", b"405"),
        (b"GET\r\n\r\n", b"404"),
        (b"HEAD /healthz HTTP/1.1\r\n\r\n", b"200"),
        (b"x" * 3 * probes.REQUEST_BYTES, b""),
    ],
)
def test_what_is_no_request_for_it_is_refused(request_: bytes, status: bytes) -> None:
    async def test(port: int) -> None:
        assert (await answer(port, request_))[9:12] == status
        assert (await answer(port, get("/healthz")))[9:12] == b"200"

    served(test)


def test_a_client_that_says_nothing_keeps_no_other_from_an_answer_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probes, "REQUEST_SECONDS", 0.2)

    async def test(port: int) -> None:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2 * probes.CONNECTIONS)]
        for reader, writer in silent:
            assert await reader.read() == b"", "it is given up"
            writer.close()
        assert (await answer(port, get("/healthz")))[9:12] == b"200"

    served(test)


def test_a_port_that_is_taken_is_said() -> None:
    async def test(port: int) -> None:
        operator = Operator(MemoryCluster(time.time), agent=AgentSetup(image=None), clock=time.time)
        with pytest.raises(EngineError, match=rf"--listen 127\.0\.0\.1:{port}: .*in use"):
            await HealthProbes(operator, None).served("127.0.0.1", port).__aenter__()

    served(test)
