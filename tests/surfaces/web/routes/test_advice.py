"""What could be changed in a job, by the API."""

from __future__ import annotations

import json
import threading
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from click.testing import Result
from starlette.testclient import TestClient

from paceline.services.studying import proposals
from paceline.specs.edits import assignments


@pytest.mark.slow
def test_proposals_are_those_of_the_command_line(
    client: TestClient, recorded: str, paceline: Callable[..., Result]
) -> None:
    said = client.get(f"/api/v1/jobs/{recorded}/proposals").json()
    assert said == json.loads(paceline("tune", recorded, "-o", "json").stdout)
    assert said["items"][0]["diff"]


def test_a_prediction_is_that_of_the_command_line(
    client: TestClient, recorded: str, paceline: Callable[..., Result]
) -> None:
    said = client.post(f"/api/v1/jobs/{recorded}/predict", json={"set": ["ps.cpu=500m"]}).json()
    assert said == json.loads(paceline("predict", recorded, "--set", "ps.cpu=500m", "-o", "json").stdout)
    assert said["low"] < said["times"] < said["high"]


def test_a_caller_who_waits_for_proposals_keeps_no_other_from_being_answered(
    client: TestClient, recorded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads of a server are few: forty."""
    begun, going_on = threading.Event(), threading.Event()
    made: list[str] = []

    def slow(*_: object) -> list[object]:
        made.append("once")
        begun.set()
        assert going_on.wait(240)
        return []

    monkeypatch.setattr(proposals, "proposals", slow)
    url = f"/api/v1/jobs/{recorded}/proposals"
    # All of them in one loop, as in a server.
    with client, ThreadPoolExecutor(60) as asking:
        waiting = [asking.submit(client.get, url) for _ in range(60)]
        assert begun.wait(240)
        assert client.get("/api/v1/codes").status_code == 200
        assert not any(each.done() for each in waiting)
        going_on.set()
        assert [each.result(240).json()["items"] for each in waiting] == [[]] * 60
    assert made == ["once"]


@pytest.mark.parametrize("change", ["ps.cpu", "ps.cores=2", "training.batch_size=7", "ps.cpu=[", ""])
def test_a_change_that_is_wrong(client: TestClient, recorded: str, change: str) -> None:
    answer = client.post(f"/api/v1/jobs/{recorded}/predict", json={"set": [change]})
    assert answer.status_code == 422


def test_values_of_a_prediction_are_read_where_reading_can_be_given_up(
    client: TestClient, recorded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """YAML reads numbers of base sixty, in the square of their length: not in here, nor on the loop."""
    monkeypatch.setattr(assignments, "change", lambda text: pytest.fail(f"read in the server: {text[:20]}"))
    url = f"/api/v1/jobs/{recorded}/predict"
    assert client.post(url, json={"set": ["ps.cpu=500m"]}).status_code == 200
    assert client.post(url, json={"set": ["ps.cpu=" + "1:" * 8000 + "1"]}).status_code == 422


@pytest.mark.parametrize("number", ["9" * (1 << 20), "1:" * (1 << 19), "0x" + "f" * (1 << 20)])
def test_a_number_of_a_megabyte_costs_the_server_no_more_than_its_body(
    client: TestClient, recorded: str, number: str
) -> None:
    """What is allocated is counted: a few copies of the request, and no number."""
    name = f"/api/v1/jobs/{recorded}"
    requests = [
        (f"{name}/predict", {"set": [f"ps.replicas={number}"]}),
        ("/api/v1/lint", {"source": f"spec: {number[:1_000_000]}"}),
        (f"{name}/change", {"source": f"spec: {number[:1_000_000]}"}),
    ]
    client.post("/api/v1/lint", json={"source": "x"})  # What is imported late has been imported.
    for url, body in requests:
        tracemalloc.start()
        try:
            assert client.post(url, json=body).status_code == 422
            assert tracemalloc.get_traced_memory()[1] < 32 << 20
        finally:
            tracemalloc.stop()
