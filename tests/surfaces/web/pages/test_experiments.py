"""The pages of experiments and searches, and what the API says of them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable

import pytest
from click.testing import Result
from starlette.testclient import TestClient
from support import filled_homes, searches

from paceline.model.jobs.statuses import JobPhase
from paceline.model.studies.experiments import Experiment
from paceline.services.local import jobs
from paceline.services.studying.trials import LABEL


@pytest.fixture
def experiment(api: jobs.Jobs) -> Experiment:
    """One of which a run is still to be made."""
    api.store.save_study(searches.COMPARED, at=1e9)
    return searches.COMPARED


def test_a_home_without_any_says_what_to_do(client: TestClient) -> None:
    assert "paceline experiment run FILE" in client.get("/experiments").text


def test_all_of_them_with_how_far_they_are(
    client: TestClient, api: jobs.Jobs, experiment: Experiment
) -> None:
    api.store.save_study(searches.ENDED, at=2e9)
    page = client.get("/experiments").text
    assert page.index("clicks-trial") < page.index("sizes")
    assert "3 / 4" in page
    said = client.get("/api/v1/experiments").json()["items"]
    assert [(each["name"], each["is_complete"]) for each in said] == [
        ("clicks-trial", True), ("sizes", False),
    ]  # fmt: skip
    assert len(client.get("/api/v1/experiments", params={"limit": 1}).json()["items"]) == 1


def test_an_experiment_that_goes_on(
    client: TestClient, api: jobs.Jobs, experiment: Experiment, paceline: Callable[..., Result]
) -> None:
    page = client.get("/experiments/sizes").text
    for shown in (
        "faster",
        "3.00",
        "every 5s",
        'href="/rules/ps-cpu-bound"',
        "batch_size",
        "no process runs it",
    ):
        assert shown in page
    assert "alert(1)" in page
    assert "<script>" not in page
    spec = dataclasses.replace(filled_homes.spec_of("sizes-1"), labels={LABEL: "sizes"})
    filled_homes.fill(api.home, "sizes-1", phase=JobPhase.RUNNING, spec=spec)
    part = client.get("/experiments/sizes", params={"part": True}).text
    assert "<html" not in part
    assert '<a href="/jobs/sizes-1">' in part
    said = client.get("/api/v1/experiments/sizes").json()
    printed = json.loads(paceline("experiment", "status", "sizes", "-o", "json").stdout)
    for each in printed["done"]:
        del each["outcome"]["losses"]
    assert said == printed


def test_a_search_that_has_ended(client: TestClient, api: jobs.Jobs) -> None:
    api.store.save_study(searches.ENDED, at=2e9)
    page = client.get("/experiments/clicks-trial").text
    for shown in ("every 5s",):
        assert shown not in page
    for shown in ("8.20", "undone: no difference", "lazy-adam", "Rare rows learn", "0.7010", "out of memory"):
        assert shown in page
    said = client.get("/api/v1/experiments/clicks-trial").json()
    assert said["result"]["kept"] == 1
    assert said["trials"][1]["changes"] == ["dense-update"]


@pytest.mark.parametrize("path", ["/experiments/missing", "/api/v1/experiments/missing"])
def test_one_that_is_not_there(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404
