"""What was measured of a job, by the API: what the command line says of the same."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from starlette.testclient import TestClient

from paceline.services.local import jobs
from paceline.stores import recordings


def test_why_is_what_the_command_line_says(
    client: TestClient, recorded: str, paceline: Callable[..., Result]
) -> None:
    said = client.get(f"/api/v1/jobs/{recorded}/why").json()
    assert said == json.loads(paceline("why", recorded, "-o", "json").stdout)
    assert said["causes"][0]["code"] == "PS101"
    assert "+" in said["causes"][0]["diff"]


def test_a_snapshot_is_what_top_says(
    client: TestClient, recorded: str, paceline: Callable[..., Result]
) -> None:
    said = client.get(f"/api/v1/jobs/{recorded}/snapshot").json()
    assert said == json.loads(paceline("top", recorded, "-o", "json").stdout)
    assert said["finding"]["name"] == "ps-cpu-bound"


def test_samples_in_as_many_points_as_are_asked_for(
    client: TestClient, recorded: str, api: jobs.Jobs
) -> None:
    path = f"/api/v1/jobs/{recorded}/samples"
    whole = client.get(path, params={"points": 5000}).json()
    assert whole["every_seconds"] is None
    measured = api.store.samples(recorded)
    assert sum(len(each["at_unix_seconds"]) for each in whole["items"]) == len(measured)
    few = client.get(path, params={"points": 5, "field": ["cpu_cores"], "role": "ps"}).json()
    assert few["every_seconds"] > 1
    assert {each["replica"] for each in few["items"]} == {"ps-0", "ps-1"}
    for series in few["items"]:
        assert 1 < len(series["at_unix_seconds"]) <= 8
        assert list(series["values"]) == ["cpu_cores"]
    one = client.get(path, params={"replica": "ps-1", "points": 5}).json()
    assert {each["replica"] for each in one["items"]} == {"ps-1"}
    at = measured[len(measured) // 2].at
    late = client.get(path, params={"since": at}).json()
    assert min(min(each["at_unix_seconds"]) for each in late["items"]) >= at


def test_steps_and_evaluations(client: TestClient, recorded: str, api: jobs.Jobs) -> None:
    steps = client.get(f"/api/v1/jobs/{recorded}/steps", params={"field": "examples"}).json()["items"]
    told = sum(each.examples or 0 for each in api.store.step_reports(recorded))
    assert sum(sum(filter(None, each["values"]["examples"])) for each in steps) == told
    assert client.get(f"/api/v1/jobs/{recorded}/evaluations").json()["kind"] == "SeriesList"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"field": "cpu"}, "there is no field 'cpu'"),
        ({"replica": "ps0"}, "is no replica"),
        ({"points": 1}, "greater than or equal to 2"),
        ({"since": "nan"}, "finite number"),
    ],
)
def test_a_query_that_is_wrong(client: TestClient, recorded: str, query: dict, said: str) -> None:
    answer = client.get(f"/api/v1/jobs/{recorded}/samples", params=query)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]


@pytest.mark.parametrize("what", ["why", "snapshot", "samples", "steps", "evaluations", "proposals"])
def test_a_job_that_is_not_there(client: TestClient, what: str) -> None:
    assert client.get(f"/api/v1/jobs/missing/{what}").status_code == 404


def test_the_course_of_a_job_and_what_comes_after(client: TestClient, recorded: str) -> None:
    path = f"/api/v1/jobs/{recorded}/course"
    whole = client.get(path).json()
    assert whole["replicas"] == ["ps-0", "ps-1", "worker-0", "worker-1"]
    assert {len(row) for row in (*whole["values"], *whole["shares"], whole["loss"])} == {whole["cells"]}
    assert whole["measured"] == ["cpu", "memory", "received", "sent", "throttled"]
    since = whole["since_unix_seconds"] + 10 * whole["cell_seconds"]
    rest = client.get(path, params={"since": since}).json()
    assert rest["since_unix_seconds"] == since
    assert [row[10:] for row in whole["values"]] == rest["values"]
    sent = client.get(path, params={"gauge": "sent"}).json()
    assert (sent["unit"], sent["shares"]) == ("bytes_per_second", None)
    nothing = client.get(path, params={"gauge": "gpu"}).json()
    assert {value for row in nothing["values"] for value in row} == {None}
    assert client.get(path, params={"gauge": "heat"}).status_code == 422
    assert client.get("/api/v1/jobs/missing/course").status_code == 404


def test_a_recording_says_what_it_is(client: TestClient, recorded: str) -> None:
    answer = client.get(f"/api/v1/jobs/{recorded}/recording")
    assert answer.headers["content-type"] == "application/vnd.apache.parquet"
    assert answer.content.startswith(b"PAR1")


@pytest.mark.parametrize("asked", [None, "bytes=0-99", "bytes=99999999999-", "nonsense", "bytes=5-1"])
def test_a_recording_is_sent_whole_and_leaves_no_file(
    client: TestClient, recorded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str | None
) -> None:
    """Each request makes another file: parts of two of them do not fit together."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    headers = {} if asked is None else {"Range": asked}
    answer = client.get(f"/api/v1/jobs/{recorded}/recording", headers=headers)
    assert (answer.status_code, answer.headers["accept-ranges"]) == (200, "none")
    assert answer.content.endswith(b"PAR1")
    assert list(folder.glob("*.parquet")) == []


def test_a_recording_that_would_be_too_large_has_longer_intervals(
    client: TestClient, recorded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "MOST_ROWS", 60)
    file = tmp_path / "recorded.parquet"
    file.write_bytes(client.get(f"/api/v1/jobs/{recorded}/recording").content)
    found = recordings.read(file)
    assert 0 < len(found.samples) + len(found.steps) + len(found.evaluations) <= 60
    assert "measurements are combined into intervals of" in found.run.notes[-1]
