"""The page of what there is, and what the API says of it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from starlette.testclient import TestClient
from support import filled_homes

from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import jobs, state_dirs

Sleeping = Callable[[str], str]
SAME = {"Sec-Fetch-Site": "same-origin"}
HUGE = "cpu_policy: exclusive, cpu: 4000, command"


def test_a_job_that_runs_holds_something(client: TestClient, sleeping: Sleeping) -> None:
    client.post("/api/v1/jobs", json={"source": sleeping("clicks")})
    try:
        for _ in range(100):
            said = client.get("/api/v1/cluster").json()
            if said["holdings"]:
                break
        (holding,) = said["holdings"]
        assert holding["job"] == "clicks"
        assert holding["node"] == said["nodes"][0]["name"]
        assert set(holding["replicas"]) <= {"ps", "worker"}
        part = client.get("/cluster", params={"part": True}).text
        assert "<html" not in part
        assert '<a href="/jobs/clicks">' in part
    finally:
        client.delete("/api/v1/jobs/clicks", params={"force": True})


def test_the_page_of_this_machine(client: TestClient, home: state_dirs.Home) -> None:
    filled_homes.fill(home, "waits", phase=JobPhase.PENDING, message="<b>soon</b>")
    page = client.get("/cluster").text
    assert client.get("/cluster/fit").status_code == 200
    for shown in ("This machine", "every 5s", '<a href="/jobs/waits">', "<option>waits</option>"):
        assert shown in page
    assert "<b>" not in page


def test_whether_a_job_fits(client: TestClient, api: jobs.Jobs, sleeping: Sleeping) -> None:
    said = client.post("/api/v1/fit", json={"source": sleeping("clicks")}).json()
    assert (said["fits"], said["most_workers"]) == (True, 2)
    assert said["places"] == {"ps-0": "local", "worker-0": "local", "worker-1": "local"}
    large = client.post("/api/v1/fit", json={"source": sleeping("clicks").replace("command", HUGE, 1)}).json()
    assert not large["fits"]
    assert "4000 CPU" in json.dumps(large["blockers"])
    assert client.post("/api/v1/fit", json={"source": "x"}).status_code == 422


@pytest.mark.parametrize("headers", [SAME, {**SAME, "HX-Request": "true"}])
def test_whether_a_job_fits_by_the_page(
    client: TestClient, home: state_dirs.Home, sleeping: Sleeping, headers: dict[str, str]
) -> None:
    source = sleeping("clicks").replace("\n", "\r\n")
    answer = client.post("/cluster/fit", data={"source": source}, headers=headers)
    assert "All of it fits now." in answer.text
    assert ("<html" in answer.text) is ("HX-Request" not in headers)
    filled_homes.fill(home, "census")
    assert "census" in client.post("/cluster/fit", data={"file": "census"}, headers=headers).text
    for wrong in ({"source": "kind: <b>"}, {"file": "missing"}, {}):
        answer = client.post("/cluster/fit", data=wrong, headers=headers)
        assert answer.status_code == 200
        assert 'role="alert"' in answer.text
        assert "<b>" not in answer.text
