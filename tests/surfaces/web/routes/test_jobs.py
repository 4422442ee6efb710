"""The life of jobs by the API, with real processes."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient
from support import filled_homes

from paceline.model.explanations.diagnosis_summaries import DiagnosisSummary
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.run_queries import RunPage, RunQuery
from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import jobs, state_dirs
from paceline.surfaces.web.routes import jobs as routes

Sleeping = Callable[[str], str]


def until(client: TestClient, name: str, phase: str) -> dict[str, Any]:
    deadline = time.monotonic() + 240
    while True:
        found = client.get(f"/api/v1/jobs/{name}").json()
        if found["phase"] == phase:
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def test_a_whole_life(client: TestClient, sleeping: Sleeping) -> None:
    answer = client.post("/api/v1/jobs", json={"source": sleeping("clicks")})
    assert answer.status_code == 201
    assert answer.headers["location"] == "/api/v1/jobs/clicks"
    running = until(client, "clicks", "running")
    assert [each["replica"] for each in running["replicas"]] == ["ps-0", "worker-0", "worker-1"]
    assert client.get("/api/v1/jobs/clicks/source").text == sleeping("clicks")

    assert client.delete("/api/v1/jobs/clicks").status_code == 409
    assert client.post("/api/v1/jobs/clicks/resume").json()["detail"] == "clicks is running already"
    assert client.post("/api/v1/jobs/clicks/scale", json={"workers": 3}).status_code == 202
    assert client.post("/api/v1/jobs/clicks/stop").status_code == 202
    until(client, "clicks", "stopped")
    assert client.post("/api/v1/jobs/clicks/stop").status_code == 409
    events = client.get("/api/v1/jobs/clicks/events").json()["items"]
    assert events == sorted(events, key=lambda each: each["id"])
    later = client.get("/api/v1/jobs/clicks/events", params={"since_id": events[-2]["id"]}).json()["items"]
    assert later == events[-1:]

    assert client.post("/api/v1/jobs/clicks/resume").status_code == 202
    until(client, "clicks", "running")
    assert client.delete("/api/v1/jobs/clicks", params={"force": True}).status_code == 204
    assert client.get("/api/v1/jobs/clicks").status_code == 404
    audits = client.get("/api/v1/audits", params={"job": "clicks"}).json()["items"]
    assert [each["action"] for each in reversed(audits)] == [
        "jobs.submit", "jobs.delete", "jobs.resume", "jobs.scale", "jobs.stop", "jobs.stop", "jobs.resume",
        "jobs.delete",
    ]  # fmt: skip
    assert {(each["who"], each["origin"]) for each in audits} == {("ann", "testclient")}
    assert audits[-1]["detail"] == sleeping("clicks")


def test_a_job_that_gets_another_name_is_in_the_audit_log_by_that_name(
    client: TestClient, sleeping: Sleeping
) -> None:
    for _ in range(2):
        submitted = client.post("/api/v1/jobs", json={"source": sleeping("clicks")})
    name = submitted.json()["name"]
    assert name != "clicks"
    (audit,) = client.get("/api/v1/audits", params={"job": name}).json()["items"]
    assert (audit["action"], audit["detail"]) == ("jobs.submit", "submitted as clicks")


def test_a_submit_that_is_made_again_makes_one_job(client: TestClient, sleeping: Sleeping) -> None:
    def submitted(key: str, source: str) -> tuple[int, Any]:
        headers = {"Idempotency-Key": key}
        answer = client.post("/api/v1/jobs", json={"source": source}, headers=headers)
        return answer.status_code, answer.json().get("name")

    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _: submitted("one", sleeping("clicks")), range(3)))
    assert answers == [(201, "clicks")] * 3
    assert submitted("one", sleeping("other"))[0] == 409
    assert submitted("two", sleeping("clicks")) == (201, "clicks-2")
    assert client.get("/api/v1/jobs").json()["total"] == 2


def test_a_job_file_that_is_wrong_is_a_problem_with_places(client: TestClient, sleeping: Sleeping) -> None:
    wrong = sleeping("clicks").replace("replicas: 2", "replicas: two")
    problem = client.post("/api/v1/jobs", json={"source": wrong})
    assert problem.status_code == 422
    assert problem.headers["content-type"] == "application/problem+json"
    (error,) = problem.json()["errors"]
    assert (error["path"], error["line"], error["column"]) == ("spec.roles.worker.replicas", 8, 24)
    assert "replicas: two" in error["excerpt"]


def test_what_lint_finds_is_refused_where_that_is_asked_for(client: TestClient, sleeping: Sleeping) -> None:
    source = sleeping("clicks").replace("replicas: 2", "replicas: 2, restart: {when: always}")
    found = client.post("/api/v1/lint", json={"source": source}).json()["items"]
    assert "JOB302" in [each["code"] for each in found]
    problem = client.post("/api/v1/jobs", json={"source": source, "fail_on": "error"})
    assert problem.status_code == 422
    assert [each["code"] for each in problem.json()["findings"]] == [each["code"] for each in found]
    assert client.get("/api/v1/jobs").json()["total"] == 0


@pytest.mark.parametrize(
    "base", ["relative", "/no/such/folder", "/etc/passwd", "a\0b", "/" + "a" * 5000, "/\ud800"]
)
def test_a_base_is_a_folder(client: TestClient, sleeping: Sleeping, base: str) -> None:
    body = json.dumps({"source": sleeping("clicks"), "base": base})
    headers = {"Content-Type": "application/json"}
    assert client.post("/api/v1/jobs", content=body, headers=headers).status_code == 422


def test_a_list_in_pages(client: TestClient, home: state_dirs.Home, api: jobs.Jobs) -> None:
    for number, name in enumerate(("census", "clicks", "wide")):
        spec = dataclasses.replace(filled_homes.spec_of(name), labels={"team": "ads" if number else "search"})
        filled_homes.fill(home, name, submitted_at=1e9 + number, spec=spec)
    summary = DiagnosisSummary(
        at=1e9, examples_per_second=2e4, trend=(1.0, None), code="PS001", severity=Severity.ERROR,
        finding="ps-0 is full",
    )  # fmt: skip
    api.store.save_diagnosis("census", summary)

    first = client.get("/api/v1/jobs", params={"limit": 2}).json()
    assert ([each["name"] for each in first["items"]], first["total"]) == (["wide", "clicks"], 3)
    second = client.get("/api/v1/jobs", params={"limit": 2, "after": first["after"]}).json()
    assert [each["name"] for each in second["items"]] == ["census"]
    assert second["after"] is None
    assert second["items"][0]["diagnosis"]["finding"] == "ps-0 is full"
    for query, names in (
        ({"search": "WI"}, ["wide"]),
        ({"label": "team=ads,team"}, ["wide", "clicks"]),
        ({"label": ["team=ads", "team!=ads"]}, []),
        ({"phase": "succeeded", "sort": "name", "descending": False}, ["census", "clicks", "wide"]),
        ({"sort": "speed"}, ["census", "wide", "clicks"]),
        ({"until": 1e9 + 1}, ["census"]),
    ):  # fmt: skip
        found = client.get("/api/v1/jobs", params=query).json()
        assert [each["name"] for each in found["items"]] == names, query


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0}, {"limit": 501}, {"after": "nonsense"}, {"label": "a=b=c"}, {"phase": "lost"},
        {"sort": "size"}, {"nmaespace": "ads"}, {"namespace": "ads"}, {"since": "yesterday"},
    ],
)  # fmt: skip
def test_a_query_that_is_wrong(client: TestClient, query: dict[str, Any]) -> None:
    answer = client.get("/api/v1/jobs", params=query)
    assert answer.status_code == 422
    assert answer.json()["detail"]


@pytest.mark.parametrize("name", ["%2e%2e", "missing", "a%00b", "%3Cscript%3E", "x" * 253, "任务", "a%2Fb"])
def test_a_hostile_name_is_no_job(client: TestClient, name: str) -> None:
    assert client.get(f"/api/v1/jobs/{name}").status_code == 404


def test_a_lost_job_says_so(client: TestClient, home: state_dirs.Home) -> None:
    filled_homes.fill(home, "gone", phase=JobPhase.RUNNING)
    assert client.get("/api/v1/jobs").json()["items"][0]["phase"] == "lost"
    assert client.get("/api/v1/jobs/gone").json()["phase"] == "lost"


def test_a_job_that_is_deleted_meanwhile_keeps_no_caller_from_the_list(
    client: TestClient, home: state_dirs.Home, api: jobs.Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled_homes.fill(home, "gone", phase=JobPhase.RUNNING)
    filled_homes.fill(home, "there")
    page = jobs.Jobs.page

    def deleting(self: jobs.Jobs, query: RunQuery) -> RunPage:
        found = page(self, query)
        api.store.delete_run("gone")
        return found

    monkeypatch.setattr(jobs.Jobs, "page", deleting)
    found = client.get("/api/v1/jobs").json()["items"]
    assert {each["name"]: each["phase"] for each in found} == {"gone": "running", "there": "succeeded"}


def test_old_jobs_are_pruned(
    client: TestClient, home: state_dirs.Home, api: jobs.Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("census", "clicks", "wide"):
        filled_homes.fill(home, name)
    filled_homes.fill(home, "goes-on", phase=JobPhase.RUNNING)
    monkeypatch.setattr(routes, "MOST_PRUNED", 2)
    old = {"older_than_seconds": 60}
    would = client.post("/api/v1/jobs/prune", json={**old, "dry_run": True}).json()
    assert (len(would["names"]), would["left"], would["dry_run"]) == (2, 1, True)
    assert client.post("/api/v1/jobs/prune", json=old).json()["names"] == would["names"]
    assert client.post("/api/v1/jobs/prune", json=old).json()["left"] == 0
    assert [run.name for run in api.runs()] == ["goes-on"]
    assert [audit.action for _, audit in api.store.audits(limit=9)] == ["jobs.delete"] * 3
    assert client.post("/api/v1/jobs/prune", json={}).status_code == 422
