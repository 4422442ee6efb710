"""The page of one job."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from support import filled_homes

from paceline.model.jobs.runs import SEEN, JobEvent
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.samples import StepReport
from paceline.model.roles import ReplicaId
from paceline.services.local import state_dirs
from paceline.stores import open_store, recordings
from paceline.surfaces.web.gates import TokenGate
from paceline.surfaces.web.operations import ApiOperation

HOSTILE = "</pre><script>alert(1)</script>"


def test_the_cause_stands_on_top_with_its_change(client: TestClient, recorded: str) -> None:
    page = client.get(f"/jobs/{recorded}").text
    assert page.index("PS101") < page.index("WRK201") < page.index("Examples/s")
    assert '<span class="added">+' in page
    assert "worker-1" in page
    assert f'hx-post="/jobs/{recorded}/resume"' in page
    assert "every 2s" not in page  # It has ended.


def test_the_page_in_chinese(client: TestClient, recorded: str) -> None:
    page = client.get(f"/jobs/{recorded}", params={"language": "zh"}).text
    assert '<html lang="zh">' in page
    assert "对作业文件的修改" in page
    assert '<html lang="zh">' in client.get("/").text  # It is remembered.


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/jobs/{}",
        "/jobs/{}/now",
        "/jobs/{}/timeline",
        "/jobs/{}/steps",
        "/jobs/{}/replicas",
        "/jobs/missing",
        "/enter",
    ],
)
def test_no_page_has_a_script_or_a_style_in_it(client: TestClient, recorded: str, path: str) -> None:
    text = client.get(path.format(recorded), headers={"Accept": "text/html"}).text
    for forbidden in ("<style", "style=", "javascript:", "onclick", "hx-on", "http://", "https://"):
        assert forbidden not in text.lower(), forbidden
    assert text.count("<script") == text.count('<script src="/static/')


def test_whatever_a_job_says_is_text(client: TestClient, home: state_dirs.Home, tmp_path: Path) -> None:
    spec = dataclasses.replace(filled_homes.spec_of("clicks"), labels={"team": HOSTILE})
    run = filled_homes.fill(home, "clicks", spec=spec, message=HOSTILE)
    logs = Path(run.directory) / "logs"
    logs.mkdir(parents=True)
    (logs / "ps-0.1.log").write_text(f"{HOSTILE}\n\x1b[31mred\x00\n{'x' * 100_000}\n")
    with open_store(home.store_url) as store:
        store.append_events("clicks", [JobEvent(at=1e9, kind="replica-exited", message=HOSTILE)])
    for path in ("/", "/jobs/clicks", "/jobs/clicks/logs", "/jobs/clicks/timeline"):
        text = client.get(path).text
        assert "alert(1)" in text
        assert "<script>" not in text
        assert "\x1b" not in text
        assert "\x00" not in text
        assert len(text) < 60_000


def test_what_cannot_be_done_is_said_in_its_place(client: TestClient, home: state_dirs.Home) -> None:
    filled_homes.fill(home, "done")
    headers = {"HX-Request": "true", "Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
    answer = client.post("/jobs/done/stop", headers=headers)
    assert answer.status_code == 409
    assert answer.text.startswith('<p class="banner bad" role="alert">done has ended already')


def test_a_job_is_deleted_from_its_page(client: TestClient, home: state_dirs.Home) -> None:
    filled_homes.fill(home, "done")
    answer = client.post("/jobs/done/delete")
    assert (answer.status_code, answer.headers["hx-redirect"]) == (204, "/")
    assert client.get("/jobs/done").status_code == 404
    assert client.get("/api/v1/audits").json()["items"][0]["action"] == "jobs.delete"


@pytest.mark.parametrize("replica", ["x", "ps", "ps-x", "<b>-0"])
def test_output_of_what_is_no_replica(client: TestClient, recorded: str, replica: str) -> None:
    assert client.get(f"/jobs/{recorded}/logs", params={"replica": replica}).status_code == 422


def test_traffic_and_time_of_a_step(client: TestClient, recorded: str) -> None:
    page = client.get(f"/jobs/{recorded}/steps").text
    assert "What a step moves, by variable and PS" in page
    assert page.count("<rect") > 2
    assert "No step was traced" not in page


def test_what_is_seen_in_scripts_is_said_apart_from_what_happens(
    client: TestClient, home: state_dirs.Home
) -> None:
    filled_homes.fill(home, "clicks")
    with open_store(home.store_url) as store:
        for replica in ("worker-0", "worker-1"):
            of = ReplicaId.parse(replica)
            store.append_events(
                "clicks", [JobEvent(at=1e9, kind=SEEN, message=HOSTILE, replica=of, attempt=1)]
            )
    for path in ("/jobs/clicks/steps", "/jobs/clicks/report"):
        text = client.get(path).text
        assert "<dt>ps-0, ps-1</dt><dd>nothing</dd>" in text
        assert "<dt>worker-0, worker-1</dt><dd>&lt;/pre&gt;&lt;script&gt;" in text
        assert "<script>alert" not in text
        assert SEEN not in text
    assert "alert" not in client.get("/jobs/clicks/timeline").text


def test_what_ranks_wait_for_each_other_is_shown_where_it_is_measured(
    client: TestClient, home: state_dirs.Home
) -> None:
    for name in ("clicks", "ranks"):
        filled_homes.fill(home, name, steps=3, loads=(0.5,))
    with open_store(home.store_url) as store:
        report = StepReport(
            replica=ReplicaId.parse("worker-1"), attempt=1, at=1e9 + 4, interval_seconds=1.0, steps=10,
            all_reduce_seconds=0.37,
        )  # fmt: skip
        store.append_step_reports("ranks", [report])
    for part in ("replicas", "report"):
        assert "All-reduce" not in client.get(f"/jobs/clicks/{part}").text
        text = client.get(f"/jobs/ranks/{part}").text
        assert "All-reduce" in text
        assert re.search(r"\b37 ?%", text)


def test_the_report_is_a_file(client: TestClient, recorded: str) -> None:
    answer = client.get(f"/jobs/{recorded}/report")
    assert answer.headers["content-disposition"] == f'attachment; filename="{recorded}-report.html"'
    assert "PS101" in answer.text
    assert client.get("/jobs/missing/report").status_code == 404


def test_the_report_and_the_recording_show_output_only_to_callers_who_may_read_it(
    client: TestClient, home: state_dirs.Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = filled_homes.fill(home, "clicks", phase=JobPhase.FAILED)
    (Path(run.directory) / "logs").mkdir(parents=True)
    for row in ("ps-0", "worker-0"):
        (Path(run.directory) / "logs" / f"{row}.1.log").write_text("the secret of the output\n")
    assert "the secret of the output" in client.get("/jobs/clicks/report").text
    monkeypatch.setattr(
        TokenGate, "allows", lambda _gate, _caller, operation, _namespace: operation is not ApiOperation.LOGS
    )
    assert client.get("/jobs/clicks/logs").status_code == 403
    answer = client.get("/jobs/clicks/report")
    assert answer.status_code == 200
    assert "the secret of the output" not in answer.text
    file = tmp_path / "clicks.parquet"
    file.write_bytes(client.get("/api/v1/jobs/clicks/recording").content)
    assert recordings.read(file).output == ()


def test_without_scripts_the_page_has_the_numbers(client: TestClient, recorded: str) -> None:
    page = client.get(f"/jobs/{recorded}").text
    assert re.search(r'<th scope="row" class="text">worker-1</th>', page)


def test_the_theme_is_remembered(client: TestClient, recorded: str) -> None:
    assert "data-theme" not in client.get("/").text
    chosen = client.get(f"/jobs/{recorded}", params={"theme": "dark"}).text
    assert '<html lang="en" data-theme="dark">' in chosen
    assert 'data-theme="dark"' in client.get("/", params={"theme": "nonsense"}).text
    assert "data-theme" not in client.get("/", params={"theme": "auto"}).text
    # What else an address says stays in it.
    assert "/?search=a%26b&amp;language=zh" in client.get("/", params={"search": "a&b"}).text
