"""What is turned away before the application looks at it."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from paceline.surfaces.web import guards
from paceline.surfaces.web.rates import MOST_ADDRESSES, RateLimiter


def test_another_name_is_not_this_server(client: TestClient) -> None:
    """A page whose name resolves to this address would pass for one of ours (DNS rebinding)."""
    for host in ("evil.example", "testserver:80", "testserver.evil.example", ""):
        answer = client.get("/api/v1/jobs", headers={"Host": host})
        assert answer.status_code == 421
        assert answer.headers["content-type"] == "application/problem+json"
    assert client.get("/api/v1/jobs", headers={"Host": "TestServer"}).status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/healthz", "/nowhere", "/api/v1/jobs/none"])
def test_every_answer_has_the_headers(client: TestClient, path: str) -> None:
    answer = client.get(path)
    for name, value in guards.HEADERS.items():
        assert answer.headers[name] == value
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"


def test_a_request_has_a_size(client: TestClient) -> None:
    large = {"source": "x" * (guards.MOST_BYTES + 1)}
    assert client.post("/api/v1/lint", json=large).status_code == 413
    pieces = (b"x" * (1 << 20) for _ in range(5))
    answer = client.post("/api/v1/lint", content=pieces, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"
    assert client.post("/api/v1/lint", headers={"Content-Length": "9" * 5000}).status_code == 413


def test_a_caller_who_asks_too_often_waits(client: TestClient, clock) -> None:
    answers = [client.get("/healthz").status_code for _ in range(int(guards.BURST) + 1)]
    assert answers == [200] * int(guards.BURST) + [429]
    assert client.get("/healthz").headers["retry-after"] == "1"
    clock.now += 1 / guards.RATE
    assert client.get("/healthz").status_code == 200


def test_many_addresses_take_no_more_room() -> None:
    rates = RateLimiter(rate=1.0, burst=2.0, clock=lambda: 0.0)
    for number in range(2 * MOST_ADDRESSES):
        assert rates.wait_seconds(str(number)) == 0.0
    assert len(rates._buckets) == MOST_ADDRESSES


def test_a_bucket_fills_up_again_and_no_further(clock) -> None:
    rates = RateLimiter(rate=2.0, burst=3.0, clock=clock)
    assert [rates.wait_seconds("ann") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert rates.wait_seconds("bob") == 0.0
    clock.now += 1000.0
    assert [rates.wait_seconds("ann") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
