"""Models over their runs, and what is kept of finished jobs."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient
from support import filled_homes, trained_runs

from paceline.services.local import state_dirs


@pytest.fixture
def model(home: state_dirs.Home) -> str:
    """The name of a model with a dozen runs, one of which did worse."""
    filled_homes.fill(home, "other")
    return trained_runs.fill(home)


def test_models_are_listed_with_how_they_do(client: TestClient, model: str) -> None:
    assert model.startswith("ctr-")
    found = client.get("/api/v1/models").json()["items"]
    assert [each["runs"] for each in found] == [12, 1]
    assert found[0]["name"] == model
    assert found[0]["examples_per_core_hour"] == pytest.approx(9300 / 3.6 * 3600)
    assert found[1]["examples_per_second"] is None
    assert len(client.get("/api/v1/models", params={"limit": 1}).json()["items"]) == 1


def test_a_run_that_did_worse_is_pointed_out(client: TestClient, model: str) -> None:
    found = client.get(f"/api/v1/models/{model}/trend").json()
    assert found["model"] == model
    assert [each["name"] for each in found["items"]] == [f"nightly-{number}" for number in range(12)]
    assert found["items"][0]["examples_per_second"] is None
    worse = {each["name"]: each["regressions"] for each in found["items"] if each["regressions"]}
    assert list(worse) == ["nightly-10"]
    (only,) = worse["nightly-10"]
    assert only["measure"] == "examples for each core-second"
    assert only["times"] == pytest.approx(0.56, abs=0.02)
    assert only["low"] < only["times"] < only["high"] < 1
    assert client.get("/api/v1/models/missing/trend").status_code == 404


def test_what_is_kept_is_said(client: TestClient, model: str) -> None:
    found = client.get("/api/v1/history").json()
    assert found["full_seconds"] == 14 * 86_400
    assert found["runs_seconds"] is None
    assert found["runs"] == {"full": 13, "minutes": 0, "summary": 0}
    assert found["store_bytes"] > 4096
