"""Connections have to say in time what they want, and end in time."""

from __future__ import annotations

import collections
import contextlib
import itertools
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from paceline.surfaces.web import connections
from paceline.surfaces.web.connections import TimedConnection

#: Until what is expected happens, on however busy a machine.
PATIENCE_SECONDS = 300.0
ANSWER = b"HTTP/1.1 401"


async def refusing(scope: Any, receive: Any, send: Any) -> None:
    """Answer at once, and read nothing."""
    headers = [(b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


class Running(uvicorn.Server):
    """A server in a thread."""

    def install_signal_handlers(self) -> None:
        """Leave them to the tests."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        config = uvicorn.Config(refusing, http=TimedConnection, ws="none", lifespan="off", log_config=None)
        server = Running(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield listener.getsockname()
        server.should_exit = True
        thread.join()


def connected(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, timeout=PATIENCE_SECONDS)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"G"])
def test_headers_have_to_come_in_time(
    address: tuple[str, int], sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)
    with connected(address) as one:
        one.sendall(sent)
        assert one.recv(1) == b""


def test_the_headers_of_a_further_request_have_to_come_in_time(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)
    with connected(address) as one:
        one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT")
        assert read(one).startswith(ANSWER)


def test_the_rest_of_a_body_is_taken_for_some_seconds_and_no_longer(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LINGER_SECONDS", 0.2)
    with connected(address) as one:
        one.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert one.recv(12) == ANSWER
        pieces = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
        with pytest.raises(ConnectionError):  # It sends for as long as it can: each piece is dropped.
            collections.deque(map(one.sendall, itertools.repeat(pieces)), maxlen=0)


def test_a_client_that_sends_all_of_a_body_reads_its_answer_and_goes_on(address: tuple[str, int]) -> None:
    body = b"x" * (4 << 20)
    with connected(address) as one:
        for _ in range(2):
            one.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        answers = b""
        while answers.count(ANSWER) < 2:
            answers += one.recv(1000) or pytest.fail("it ended")


def read(one: socket.socket) -> bytes:
    """Return all that comes until the connection ends."""
    found = b""
    while piece := one.recv(1000):
        found += piece
    return found
