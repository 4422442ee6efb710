"""What could be changed in a job, by the API."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from click.testing import Result
from starlette.testclient import TestClient

from paceline.services import proposals


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


def test_who_waits_for_proposals_keeps_nobody_from_being_answered(
    client: TestClient, recorded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads of a server are few: forty."""
    begun, going_on = threading.Event(), threading.Event()
    made: list[str] = []

    def slow(*_: object) -> list[object]:
        made.append("once")
        begun.set()
        assert going_on.wait(60)
        return []

    monkeypatch.setattr(proposals, "proposals", slow)
    url = f"/api/v1/jobs/{recorded}/proposals"
    # All of them in one loop, as in a server.
    with client, ThreadPoolExecutor(60) as asking:
        waiting = [asking.submit(client.get, url) for _ in range(60)]
        assert begun.wait(60)
        assert client.get("/api/v1/codes").status_code == 200
        assert not any(each.done() for each in waiting)
        going_on.set()
        assert [each.result(60).json()["items"] for each in waiting] == [[]] * 60
    assert made == ["once"]


@pytest.mark.parametrize("change", ["ps.cpu", "ps.cores=2", "training.batch_size=7", "ps.cpu=[", ""])
def test_a_change_that_is_wrong(client: TestClient, recorded: str, change: str) -> None:
    answer = client.post(f"/api/v1/jobs/{recorded}/predict", json={"set": [change]})
    assert answer.status_code == 422
