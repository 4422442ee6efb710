"""Bodies of requests: who one is comes before them, and how much of them is held."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message
from support.served import Server, serving

from paceline.services.local import state_dirs
from paceline.surfaces.web import guards
from paceline.surfaces.web.rates import BodyBudget

TOKEN = {"authorization": "Bearer the-token"}
CONNECTIONS = 500
MOST_COST_BYTES = 100_000_000


class Sender:
    """A client that sends a body piece by piece, when it is asked for more."""

    def __init__(self, app: ASGIApp, path: str, headers: dict[str, str], pieces: list[bytes]) -> None:
        self._app, self._path, self._headers = app, path, headers
        self._pieces = pieces
        self.begun, self.going_on = asyncio.Event(), asyncio.Event()
        self.asked = 0

    async def status(self) -> int:
        """Return how it is answered."""
        found: list[int] = []

        async def receive() -> Message:
            self.asked += 1
            self.begun.set()
            await self.going_on.wait()
            piece = self._pieces.pop(0) if self._pieces else b""
            return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                found.append(message["status"])

        headers = {"host": "testserver", "content-type": "application/json", **self._headers}
        scope = {
            "type": "http", "method": "POST", "path": self._path, "raw_path": self._path.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "query_string": b"", "client": ("203.0.113.7", 1), "server": ("testserver", 80), "scheme": "http",
            "root_path": "", "http_version": "1.1",
        }  # fmt: skip
        await self._app(scope, receive, send)
        return found[0]


PATHS = ("/api/v1/jobs", "/api/v1/lint", "/api/v1/recordings", "/submit", "/leave", "/nowhere", "/n/x/submit")
STRANGERS: tuple[dict[str, str], ...] = (
    {},
    {"authorization": "Bearer wrong"},
    {"authorization": "Basic x"},
    {"cookie": f"paceline-http={'x' * 43}", "sec-fetch-site": "same-origin"},
)
LENGTHS = ({"content-length": "1000000"}, {"transfer-encoding": "chunked"})


def test_nothing_is_read_of_those_who_are_not_known(stranger: TestClient) -> None:
    async def asked(path: str, headers: dict[str, str]) -> tuple[int, int]:
        sender = Sender(stranger.app, path, headers, [b"x" * 1_000_000])
        return await sender.status(), sender.asked

    for path, who, length in itertools.product(PATHS, STRANGERS, LENGTHS):
        status, read = asyncio.run(asked(path, who | length))
        assert status in (401, 429), (path, who, length)
        assert read == 0, (path, who, length)


def test_a_page_of_another_site_has_no_body_read_either(stranger: TestClient) -> None:
    stranger.get("/enter", params={"token": "the-token"})
    headers = {"cookie": f"paceline-http={stranger.cookies['paceline-http']}", "sec-fetch-site": "cross-site"}

    async def asked() -> tuple[int, int]:
        sender = Sender(stranger.app, "/submit", headers | {"content-length": "10"}, [b"x" * 10])
        return await sender.status(), sender.asked

    assert asyncio.run(asked()) == (403, 0)


def test_what_lets_one_in_is_small(stranger: TestClient) -> None:
    large = {"token": "x" * guards.MOST_ENTRY_BYTES}
    assert stranger.post("/enter", data=large).status_code == 413
    assert stranger.post("/n/ads/enter", data=large).status_code == 413
    assert stranger.post("/enter", data={"token": "x" * 16_384}).status_code == 401


def statuses(app: ASGIApp, path: str, headers: dict[str, str], count: int) -> list[int]:
    """Return how as many are answered that are all under way before the first one goes on."""

    async def asked() -> list[int]:
        body = json.dumps({"source": "x"}).encode()
        senders = [Sender(app, path, dict(headers), [body]) for _ in range(count)]
        tasks = [asyncio.ensure_future(each.status()) for each in senders]
        for each, task in zip(senders, tasks, strict=True):
            begun = asyncio.ensure_future(each.begun.wait())
            await asyncio.wait([begun, task], return_when=asyncio.FIRST_COMPLETED)
            begun.cancel()
        for each in senders:
            each.going_on.set()
        return await asyncio.gather(*tasks)

    return asyncio.run(asked())


def test_bodies_of_an_address_are_held_to_its_budget(client: TestClient) -> None:
    headers = TOKEN | {"content-length": str(guards.MOST_BYTES)}
    fit = guards.MOST_HELD_EACH // guards.MOST_BYTES
    assert statuses(client.app, "/api/v1/lint", headers, fit + 2) == [422] * fit + [429] * 2
    # All of it is free again.
    assert statuses(client.app, "/api/v1/lint", headers, fit) == [422] * fit
    # The size of a body that comes in pieces is not known.
    chunked = TOKEN | {"transfer-encoding": "chunked"}
    assert statuses(client.app, "/api/v1/lint", chunked, fit + 1) == [422] * fit + [429]


def test_bodies_of_all_are_held_to_a_budget(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = BodyBudget(3 * guards.MOST_BYTES, 9 * guards.MOST_BYTES)
    monkeypatch.setattr(guards, "BodyBudget", lambda *_: budget)
    headers = TOKEN | {"content-length": str(guards.MOST_BYTES)}
    assert statuses(client.app, "/api/v1/lint", headers, 4) == [422] * 3 + [503]
    assert budget.held_bytes == 0


def test_a_budget_is_of_each_and_of_all() -> None:
    budget = BodyBudget(most=10, most_each=6)
    with budget.holding("ann", 6):
        assert budget.is_spent("ann", 1)
        assert not budget.is_spent("bob", 6)
        assert budget.has_room(4)
        assert not budget.has_room(5)
    assert budget.held_bytes == 0
    assert not budget.is_spent("ann", 6)


@pytest.fixture
def server(home: state_dirs.Home) -> Iterator[Server]:
    with serving(home) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/api/v1/jobs", "/enter"])
def test_five_hundred_who_are_not_known_cost_little_with_their_bodies(server: Server, path: str) -> None:
    """Each sends as much of four megabytes as is taken, and keeps the connection."""
    status(server, b"GET /api/v1/codes HTTP/1.1", b"")  # All that is imported late has been imported.
    before = peak_bytes(server)
    body = b"x" * (4 << 20)
    request = f"POST {path} HTTP/1.1".encode()
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(connected(server)) for _ in range(CONNECTIONS)]
        for each in sockets:
            each.sendall(head(server, request, len(body)))
            each.setblocking(False)
        left = dict.fromkeys(sockets, len(body))
        for _ in range(20):
            for each in sockets:
                with contextlib.suppress(OSError):  # It takes no more, or has ended.
                    left[each] -= each.send(body[: min(left[each], 1 << 18)])
        # It answers others meanwhile.
        assert status(server, b"GET /healthz HTTP/1.1", b"") == 200
        right = f"Authorization: Bearer {server.token}\r\n".encode()
        assert status(server, b"GET /api/v1/jobs HTTP/1.1", right) == 200
        for each in sockets:
            each.settimeout(600)
            with contextlib.suppress(ConnectionResetError):
                assert each.recv(12) in (b"HTTP/1.1 401", b"HTTP/1.1 413", b"HTTP/1.1 503")
    assert sum(len(body) - each for each in left.values()) > CONNECTIONS * 64_000, "they did send much"
    assert peak_bytes(server) - before < MOST_COST_BYTES


def connected(server: Server) -> socket.socket:
    host, _, port = server.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=600)


def head(server: Server, request: bytes, length: int, more: bytes = b"") -> bytes:
    host = server.url.removeprefix("http://").encode()
    return request + b"\r\nHost: %b\r\nContent-Length: %d\r\n%b\r\n" % (host, length, more)


def status(server: Server, request: bytes, more: bytes) -> int:
    with connected(server) as one:
        one.sendall(head(server, request, 0, more))
        return int(one.recv(12).split()[1])


def peak_bytes(server: Server) -> int:
    """Return how much memory the server has had at most."""
    (line,) = (
        each
        for each in Path(f"/proc/{server.pid}/status").read_text().splitlines()
        if each.startswith("VmHWM")
    )
    return int(line.split()[1]) << 10
