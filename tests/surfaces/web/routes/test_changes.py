"""Changes of a job that runs, by the API and from its page, with real processes that train faster then."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from support import paced_jobs

from paceline.services.local import jobs
from paceline.services.studying import changes

Sleeping = Callable[[str], str]
PATH = ["spec", "training", "fused_tables"]


def until(condition: Callable[[], object], seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


@pytest.mark.slow
def test_a_change_is_made_measured_and_undone(
    client: TestClient, api: jobs.Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "LEAST_SECONDS", 2.0)
    monkeypatch.setattr(changes, "SETTLE_SECONDS", 1.0)
    source = paced_jobs.source(tmp_path)
    client.post("/api/v1/jobs", json={"source": source, "base": str(tmp_path)}).raise_for_status()
    until(lambda: len(api.store.step_reports("paced")) > 40)
    edit = {"edits": [{"path": PATH, "value": True}]}

    asked = client.post("/api/v1/jobs/paced/change", json={**edit, "dry_run": True}).json()
    assert "+  training: {fused_tables: true, batch_size: 200}" in asked["diff"]
    assert client.get("/api/v1/jobs/paced/changes").json()["items"] == []
    assert client.post("/api/v1/jobs/paced/change", json=edit).status_code == 202
    assert client.post("/api/v1/jobs/paced/change", json=edit).status_code == 409

    def gained() -> dict[str, float] | None:
        (item,) = client.get("/api/v1/jobs/paced/changes").json()["items"]
        return item["gained"]  # type: ignore[no-any-return]

    until(gained)
    found = gained()
    assert found is not None
    # Twice, but for reports that a busy machine has not read yet at either side of the change.
    assert found["low"] <= found["times"] <= found["high"]
    assert found["times"] > 1
    assert "times as fast" in client.get("/jobs/paced/now").text

    assert client.post("/api/v1/jobs/paced/undo").status_code == 202
    until(lambda: api.get("paced").source == source)
    audits = client.get("/api/v1/audits", params={"job": "paced"}).json()["items"]
    assert [each["action"] for each in audits] == ["jobs.apply"] * 3 + ["jobs.submit"]
    assert "-  training: {fused_tables: true" in audits[0]["detail"]
    api.stop("paced")
    api.wait("paced", timeout_seconds=300)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"edits": [], "source": None}, 422),
        ({"edits": [{"path": ["spec", "nonsense"], "value": 1}]}, 422),
        ({"edits": [{"path": [], "value": 1}]}, 422),
        ({"edits": [{"path": ["spec", "command"], "value": [None]}]}, 422),
        ({"edits": [{"path": ["spec", "labels"], "value": {"a": None}}]}, 422),
        ({"edits": [{"path": ["spec", "threads"], "value": 10**400}]}, 422),
        ({"edits": [{"path": ["spec", "command"], "value": ["a\0b"]}]}, 422),
        ({"source": "a: b"}, 422),
    ],
)
def test_a_change_that_is_wrong(
    client: TestClient, recorded: str, body: dict[str, object], status: int
) -> None:
    assert client.post(f"/api/v1/jobs/{recorded}/change", json=body).status_code == status
    assert client.get(f"/api/v1/jobs/{recorded}/changes").json()["items"] == []


def test_what_was_not_changed_is_not_undone(client: TestClient, recorded: str) -> None:
    answer = client.post(f"/api/v1/jobs/{recorded}/undo")
    assert answer.status_code == 409
    assert "was not changed" in answer.json()["detail"]


def test_a_cause_that_is_gone_is_not_applied(client: TestClient, recorded: str) -> None:
    page = client.get(f"/jobs/{recorded}").text
    assert f'hx-post="/jobs/{recorded}/apply"' in page
    assert client.post(f"/jobs/{recorded}/apply", data={"cause": "PS001"}).status_code == 409
