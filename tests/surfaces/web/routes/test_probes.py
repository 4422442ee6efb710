"""Probes and resizes by the API: listed, begun, refused; jobs that are really cut are in tests/services."""

from __future__ import annotations

import asyncio
import threading

import pytest
from anyio import to_thread
from starlette.testclient import TestClient
from support import filled_homes, probed_runs

from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import jobs, state_dirs
from paceline.services.studying import probes
from paceline.stores import open_store
from paceline.surfaces.web.routes import probes as probe_routes


@pytest.fixture
def probed(home: state_dirs.Home) -> str:
    filled_homes.fill(home, "clicks", loads=(0.9, 0.2), steps=3)
    with open_store(home.store_url) as store:
        store.save_probe("clicks", probed_runs.probe("clicks"))
        store.save_probe("clicks", probed_runs.probe("clicks", began_at=2e9, ended=None))
    return "clicks"


def test_probes_are_listed(client: TestClient, probed: str) -> None:
    document = client.get(f"/api/v1/jobs/{probed}/probes").json()
    first, second = document["items"]
    assert (first["name"], first["ended"], second["ended"]) == (probed, "all that matters is known", None)
    assert first["parts"][0] == {
        "name": "cores of ps-0",
        "knob": "cpu",
        "targets": ["ps-0"],
        "verdict": "binds",
        "elasticity": 0.98,
        "low": 0.81,
        "high": 1.15,
        "cuts": 2,
        "at_limit": True,
    }
    assert [each["at_limit"] for each in first["cuts"]] == [[], ["ps-0"]]
    assert client.get("/api/v1/jobs/missing/probes").status_code == 404


def test_what_does_not_run_is_neither_probed_nor_resized(client: TestClient, probed: str) -> None:
    answer = client.post(f"/api/v1/jobs/{probed}/probes", json={})
    assert (answer.status_code, "only what runs can be probed" in answer.json()["detail"]) == (409, True)
    answer = client.post(f"/api/v1/jobs/{probed}/resize", json={"target": "ps-0", "cpu_cores": 2})
    assert (answer.status_code, "does not run" in answer.json()["detail"]) == (409, True)


def test_probes_take_no_thread_of_other_requests_and_have_a_number(
    stranger: TestClient, home: state_dirs.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each probe holds a thread for as long as it takes, up to an hour."""
    most = 3
    monkeypatch.setattr(probe_routes, "MOST_PROBES", most)
    go_on = threading.Event()
    monkeypatch.setattr(probes.Prober, "begin", lambda *_: go_on.wait)
    filled_homes.fill(home, "live", phase=JobPhase.RUNNING)
    path, token = "/api/v1/jobs/live/probes", {"Authorization": "Bearer the-token"}
    with stranger as client:  # One event loop for all requests.
        client.portal.call(_only_threads, 1)
        try:
            begun = [client.post(path, json={}, headers=token) for _ in range(most + 1)]
            assert [each.status_code for each in begun] == [202] * most + [503]
            assert f"{most} probes" in begun[-1].json()["detail"]
        finally:
            go_on.set()
        client.portal.call(_ended, client.app.state.tasks)
        assert client.post(path, json={}, headers=token).status_code == 202


async def _only_threads(count: int) -> None:
    to_thread.current_default_thread_limiter().total_tokens = count


async def _ended(tasks: set[asyncio.Task[None]]) -> None:
    await asyncio.gather(*tasks)


def test_a_probe_that_is_refused_holds_no_place(
    client: TestClient, probed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_routes, "MOST_PROBES", 1)
    for _ in range(2):
        assert client.post(f"/api/v1/jobs/{probed}/probes", json={}).status_code == 409


@pytest.mark.parametrize(
    "body",
    [
        {"seconds": 1},
        {"seconds": 1e9},
        {"cost_percent": 0},
        {"cost_percent": 101},
        {"seconds": "long"},
    ],
)
def test_a_probe_has_its_bounds(client: TestClient, probed: str, body: dict[str, object]) -> None:
    assert client.post(f"/api/v1/jobs/{probed}/probes", json=body).status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"target": "ps-0"},
        {"target": "server", "cpu_cores": 1},
        {"target": "ps-0", "cpu_cores": -1},
        {"target": "ps-0", "cpu_cores": 1e400},
        {"target": "ps-0", "memory_bytes": 0.5},
        {"target": "ps-0", "cpu_cores": 1, "seconds": -1},
        {"target": "x" * 10_000, "cpu_cores": 1},
    ],
)
def test_a_resize_that_makes_no_sense(
    client: TestClient, home: state_dirs.Home, body: dict[str, object]
) -> None:
    filled_homes.fill(home, "live", phase=JobPhase.RUNNING)
    content = str(body).replace("'", '"').replace("inf", "1e400")
    answer = client.post(
        "/api/v1/jobs/live/resize", content=content, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in (400, 422), answer.text


def test_the_page_shows_the_newest_that_has_found_something(client: TestClient, probed: str) -> None:
    page = client.get(f"/jobs/{probed}/probe").text
    assert "cores of ps-0" in page
    assert "0.98" in page
    assert "0.81 to 1.15" in page
    assert "Probe the job" not in page  # It has ended.


def test_a_job_that_runs_can_be_probed_from_its_page(
    client: TestClient, home: state_dirs.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs.Jobs, "is_lost", lambda *_: False)
    filled_homes.fill(home, "live", phase=JobPhase.RUNNING, loads=(0.9,), steps=3)
    page = client.get("/jobs/live/probe").text
    assert "The job was not probed yet." in page
    assert 'hx-post="/jobs/live/probe"' in page
    chinese = client.get("/jobs/live/probe", params={"language": "zh"}).text
    assert "What binds" not in chinese
