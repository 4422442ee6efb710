"""What could be changed in a job, by the API."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result
from starlette.testclient import TestClient


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


@pytest.mark.parametrize("change", ["ps.cpu", "ps.cores=2", "training.batch_size=7", "ps.cpu=[", ""])
def test_a_change_that_is_wrong(client: TestClient, recorded: str, change: str) -> None:
    answer = client.post(f"/api/v1/jobs/{recorded}/predict", json={"set": [change]})
    assert answer.status_code == 422
