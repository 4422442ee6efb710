"""Traces by the API: asked for, listed, read, and their files."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from support import filled_homes
from support.trace_files import NAME, trace, write

from paceline.model.traces import traced_steps
from paceline.services.local import jobs, state_dirs
from paceline.surfaces.web.routes import traces as routes


@pytest.fixture
def traced(home: state_dirs.Home) -> Path:
    """The folder of a job that has ended, with the traces of two trainers."""
    run = filled_homes.fill(home, "clicks")
    for trainer in ("worker-0", "worker-1"):
        write(run.directory, trace(trainer))
    return Path(run.directory)


def test_traces_are_listed_and_read(client: TestClient, traced: Path) -> None:
    (item,) = client.get("/api/v1/jobs/clicks/traces").json()["items"]
    assert item["name"] == NAME
    assert [file["name"] for file in item["files"]] == ["worker-0.1.parquet", "worker-1.1.parquet"]
    assert all(file["bytes"] > 100 for file in item["files"])
    found = client.get(f"/api/v1/jobs/clicks/traces/{NAME}").json()
    assert [each["trainer"] for each in found["trainers"]] == ["worker-0", "worker-1"]
    assert found["traffic"][0]["variable"] == "deep/vectors"
    assert found["broken"] == []


def test_files_are_given_as_they_are(client: TestClient, traced: Path) -> None:
    path = f"/api/v1/jobs/clicks/traces/{NAME}"
    answer = client.get(f"{path}/files/worker-1.1.parquet")
    assert answer.content == (traced / traced_steps.FOLDER / NAME / "worker-1.1.parquet").read_bytes()
    drawn = client.get(f"{path}/perfetto")
    assert "attachment" in drawn.headers["content-disposition"]
    assert {"grads", "MatMul"} <= {each["name"] for each in drawn.json()["traceEvents"]}


@pytest.mark.parametrize(
    "rest",
    [
        "traces/2020-01-01T00-00-00.000Z", "traces/2020-01-01T00-00-00.000Z/perfetto",
        f"traces/{NAME}/files/..%2F..%2Fjob.yaml", f"traces/{NAME}/files/nothing", "traces/..%2F..",
    ],
)  # fmt: skip
def test_what_is_not_there(client: TestClient, traced: Path, rest: str) -> None:
    assert client.get(f"/api/v1/jobs/clicks/{rest}").status_code in (404, 422)
    assert client.get(f"/api/v1/jobs/missing/{rest}").status_code in (404, 422)


def test_a_file_that_is_damaged_is_named(client: TestClient, traced: Path) -> None:
    (traced / traced_steps.FOLDER / NAME / "worker-1.1.parquet").write_bytes(b"nothing")
    found = client.get(f"/api/v1/jobs/clicks/traces/{NAME}").json()
    assert [each["trainer"] for each in found["trainers"]] == ["worker-0"]
    assert len(found["broken"]) == 1
    assert str(traced) not in found["broken"][0]


def test_a_trace_that_is_too_large_is_not_read(
    client: TestClient, traced: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MOST_READ_BYTES", 100)
    for path in ("", "/perfetto"):
        answer = client.get(f"/api/v1/jobs/clicks/traces/{NAME}{path}")
        assert answer.status_code == 409
        assert "paceline trace clicks --last" in answer.json()["hint"]


def test_a_job_that_does_not_run_takes_no_trace(client: TestClient, traced: Path) -> None:
    answer = client.post("/api/v1/jobs/clicks/traces", json={})
    assert answer.status_code == 409
    assert client.post("/api/v1/jobs/missing/traces", json={}).status_code == 404
    assert client.post("/api/v1/jobs/clicks/traces", json={"name": "../x"}).status_code == 422


def test_trainers_are_asked(client: TestClient, api: jobs.Jobs, sleeping: Callable[[str], str]) -> None:
    client.post("/api/v1/jobs", json={"source": sleeping("clicks")}).raise_for_status()
    api.wait("clicks", timeout_seconds=240, until=lambda run: run.phase == "running")
    while api.replicas("clicks")[-1].phase != "running":
        time.sleep(0.05)
    request = Path(api.get("clicks").directory) / traced_steps.FOLDER / traced_steps.REQUEST
    with client:  # So the server goes on between requests.
        answer = client.post("/api/v1/jobs/clicks/traces", json={})
        assert answer.status_code == 202
        assert request.read_text() == answer.json()["name"] + "\n"
        second = client.post("/api/v1/jobs/clicks/traces", json={"name": "2027-01-15T08-00-00.000Z"})
        assert request.read_text() == second.json()["name"] + "\n"
    assert not request.exists()
    _, audit = api.store.audits(limit=1)[0]
    assert (audit.action, audit.detail) == ("jobs.trace", "2027-01-15T08-00-00.000Z")
    api.delete("clicks", force=True)
