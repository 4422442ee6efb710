"""Recordings that come as files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from paceline.services.local import jobs
from paceline.surfaces.web import guards

URL = "/api/v1/recordings"
RECORDED = Path(__file__).parents[4] / "benchmarks" / "diagnosis" / "recordings"
FILE = RECORDED / "ps-cpu-bound.gross.deepfm-large-plain-4.parquet"


def test_a_file_becomes_a_job_that_pages_and_operations_know(client: TestClient, api: jobs.Jobs) -> None:
    answer = client.post(URL, params={"name": "mine"}, content=FILE.read_bytes())
    assert answer.status_code == 201
    assert answer.headers["location"] == "/api/v1/jobs/mine"
    assert answer.json()["notes"][-1].startswith("imported from the API")
    again = client.post(URL, params={"name": "mine"}, content=FILE.read_bytes()).json()
    assert again["name"] == "mine-2"
    listed = client.get("/api/v1/jobs", params={"finding": "ps101"}).json()
    assert {each["name"] for each in listed["items"]} == {"mine", "mine-2"}
    assert client.get("/api/v1/jobs/mine/why").json()["causes"][0]["code"] == "PS101"
    assert client.get("/jobs/mine").status_code == 200
    noted = client.get("/api/v1/audits", params={"job": "mine"}).json()["items"]
    assert [each["action"] for each in noted] == ["jobs.submit"] * 2
    (renamed,) = client.get("/api/v1/audits", params={"job": "mine-2"}).json()["items"]
    assert renamed["detail"] == "imported as mine"
    nameless = client.post(URL, content=FILE.read_bytes()).json()["name"]
    assert [each["action"] for each in client.get("/api/v1/audits", params={"job": nameless}).json()["items"]]
    refused = client.post("/api/v1/jobs/mine/resume")
    assert refused.status_code == 409


@pytest.mark.parametrize("content", [b"", b"PAR1" * 100, b"\0" * 5_000_000])
def test_what_is_none_is_refused_and_leaves_nothing(
    client: TestClient, api: jobs.Jobs, content: bytes
) -> None:
    answer = client.post(URL, content=content)
    assert answer.status_code == 422
    assert "the API is no recording of Paceline" in answer.json()["detail"]
    assert api.runs() == []


def test_what_is_too_large_is_refused_whatever_it_says_of_its_length(
    client: TestClient, api: jobs.Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "MOST_STREAMED_BYTES", 1000)

    def pieces() -> Iterator[bytes]:
        yield from (b"x" * 100 for _ in range(11))

    for content in (b"x" * 1001, pieces()):
        answer = client.post(URL, content=content)
        assert answer.status_code == 413
        assert answer.headers["content-type"] == "application/problem+json"
    # All else is as small as before.
    assert client.post("/api/v1/lint", content=b"x" * (guards.MOST_BYTES + 1)).status_code == 413
    assert api.runs() == []


def test_in_a_namespace_a_recording_is_as_large_and_all_else_as_small(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The namespace of a cluster may stand in front of every path."""
    monkeypatch.setattr(guards, "MOST_BYTES", 1000)
    monkeypatch.setattr(guards, "MOST_STREAMED_BYTES", 2000)
    statuses = [client.post(f"/n/ads{URL}", content=b"x" * size).status_code for size in (1500, 2001)]
    assert statuses == [422, 413]  # On this machine there are no namespaces.
    assert client.post("/n/ads/api/v1/lint", content=b"x" * 1500).status_code == 413
    assert client.post("/n/ads/n/ads/api/v1/recordings", content=b"x" * 1500).status_code == 413
