"""Who may ask what: every operation, with no token, a wrong one, the right one; and pages of other sites."""

from __future__ import annotations

import asyncio
import collections
import re
from collections.abc import Iterator

import pytest
from fastapi.dependencies.models import Dependant
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message
from support import site_routes

from paceline.services.local import jobs
from paceline.surfaces.web import guards
from paceline.surfaces.web.applications import application
from paceline.surfaces.web.gates import Caller, Credentials, Gate
from paceline.surfaces.web.job_files import JobFiles
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.sites import LocalSite

BODY = {"source": "x", "workers": 1, "set": []}


def operations(client: TestClient) -> list[tuple[str, str]]:
    """Return the method and the path of every operation of the API."""
    schema = client.get("/api/v1/openapi.json").json()
    return [
        (method.upper(), re.sub(r"\{\w+\}", "missing", path))
        for path, methods in schema["paths"].items()
        for method in methods
    ]


def test_a_caller_without_the_token_gets_nothing(stranger: TestClient, clock) -> None:
    found = operations(stranger)
    assert len(found) >= 18
    for method, path in found:
        clock.now += 1000.0
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic dGhlLXRva2Vu"}):
            answer = stranger.request(method, path, headers=headers)
            assert answer.status_code == 401, (method, path, headers)
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert answer.json()["status"] == 401
        answer = stranger.request(method, path, headers={"Authorization": "Bearer the-token"})
        assert answer.status_code not in (401, 403), (method, path)


class Rights(Gate):
    """Lets everybody pass who says a name, and each do what a test says."""

    def __init__(self) -> None:
        self.allowed: set[tuple[str, ApiOperation]] = set()

    def caller(self, credentials: Credentials) -> Caller | None:
        return Caller(credentials.token) if credentials.token else None

    def allows(self, caller: Caller, operation: ApiOperation, namespace: str | None) -> bool:
        return (caller.name, operation) in self.allowed


def test_every_operation_needs_its_own_right_and_no_other(api: jobs.Jobs, clock, job_files: JobFiles) -> None:
    gate = Rights()
    made = application(LocalSite(api, gate), clock=clock, job_files=job_files)
    client = TestClient(made, raise_server_exceptions=False, headers={"Authorization": "Bearer bob"})
    used = set()
    for method, path in operations(client):
        clock.now += 1000.0
        enough = [each for each in ApiOperation if _passes(client, gate, method, path, {each})]
        assert len(enough) == 1, (method, path, enough)
        assert not _passes(client, gate, method, path, set(ApiOperation) - set(enough))
        used.update(enough)
        assert enough[0].changes or method in ("GET", "POST")
    assert used >= set(ApiOperation) - {ApiOperation.APPLY, ApiOperation.TRACE}


def _passes(client: TestClient, gate: Rights, method: str, path: str, allowed: set[ApiOperation]) -> bool:
    gate.allowed = {("bob", each) for each in allowed}
    body = BODY if method == "POST" else None
    return client.request(method, path, json=body).status_code != 403


def test_every_route_says_what_it_needs(stranger: TestClient) -> None:
    """A route that does not check the caller would answer every caller."""
    found = list(site_routes.routes(stranger.app.routes))
    assert len(found) >= 20
    open_to_all = {"/healthz", "/readyz", "/enter", "/leave", "/static/style.css"}
    for route in found:
        if route.path not in open_to_all:
            assert any(hasattr(each.call, "operation") for each in _needed(route.dependant)), route.path


def _needed(dependant: Dependant) -> Iterator[Dependant]:
    for each in dependant.dependencies:
        yield each
        yield from _needed(each)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 404),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://testserver"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Origin": "http://testserver"}, 404),
        ({"Origin": "http://testserver:81"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Origin": "http://[::1"}, 403),
        ({"Origin": "http://testserver\u2100".encode()}, 403),
        ({}, 403),
    ],
)
def test_a_page_of_another_site_changes_nothing(
    stranger: TestClient, headers: dict[str, str], status: int
) -> None:
    stranger.get("/enter", params={"token": "the-token"})
    assert stranger.post("/api/v1/jobs/missing/stop", headers=headers).status_code == status
    # To look is allowed: only the page itself can read the answer.
    assert stranger.get("/api/v1/jobs", headers=headers).status_code == 200


def test_a_program_with_the_token_comes_from_nowhere(client: TestClient) -> None:
    assert client.post("/api/v1/jobs/missing/stop").status_code == 404


def test_tokens_cannot_be_guessed(stranger: TestClient, clock) -> None:
    wrong = {"Authorization": "Bearer wrong"}
    answers = [
        stranger.get("/api/v1/jobs", headers=wrong).status_code for _ in range(int(guards.WRONG_BURST) + 1)
    ]
    assert answers == [401] * int(guards.WRONG_BURST) + [429]
    clock.now += 1 / guards.WRONG_RATE
    assert stranger.get("/api/v1/jobs", headers=wrong).status_code == 401


def test_a_right_token_is_answered_among_ten_thousand_wrong_ones(stranger: TestClient) -> None:
    """They come from one address, as of all who stand behind one proxy; and the clock stands still."""
    wrong = {"Authorization": "Bearer wrong"}
    right = {"Authorization": "Bearer the-token"}
    statuses = collections.Counter(asyncio.run(_statuses(stranger.app, "/api/v1/jobs", wrong, 10_000)))
    assert statuses == {401: int(guards.WRONG_BURST), 429: 10_000 - int(guards.WRONG_BURST)}
    assert stranger.get("/api/v1/jobs", headers=right).status_code == 200
    assert stranger.post("/enter", data={"token": "the-token"}).status_code == 200  # It led to the page.
    assert stranger.get("/api/v1/jobs").status_code == 200  # By the session that this began.


async def _statuses(app: ASGIApp, path: str, headers: dict[str, str], count: int) -> list[int]:
    """Return how an application answers as many requests, asked without what a client would take for them."""
    found: list[int] = []
    sent = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            found.append(message["status"])

    for _ in range(count):
        scope = {
            "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"",
            "headers": [(b"host", b"testserver"), *sent], "client": ("testclient", 1), "scheme": "http",
            "server": ("testserver", 80), "root_path": "", "http_version": "1.1",
        }  # fmt: skip
        await app(scope, receive, send)
    return found


def test_the_token_is_in_no_answer(client: TestClient) -> None:
    for method, path in operations(client):
        answer = client.request(method, path)
        assert "the-token" not in answer.text + str(answer.headers), (method, path)
