"""The page of all jobs."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient
from support import filled_homes, html_pages

from paceline.model.explanations.diagnosis_summaries import DiagnosisSummary
from paceline.model.explanations.findings import Severity
from paceline.services.local import jobs, state_dirs


def test_a_home_without_jobs_says_what_to_do(client: TestClient) -> None:
    assert "paceline init job.yaml" in client.get("/").text


def test_jobs_with_what_is_known_of_them(client: TestClient, home: state_dirs.Home, api: jobs.Jobs) -> None:
    filled_homes.fill(home, "census")
    filled_homes.fill(home, "clicks")
    summary = DiagnosisSummary(
        at=1e9, examples_per_second=18_300.0, trend=(1.0, 2.0, None, 3.0), progress=0.5, eta_seconds=90.0,
        imbalance=2.5, code="PS101", severity=Severity.WARNING, finding="Every PS <is> at its limit.",
    )  # fmt: skip
    api.store.save_diagnosis("clicks", summary)
    page = client.get("/", params={"search": "cli"}).text
    for shown in (
        "PS101",
        "Every PS &lt;is&gt; at its limit.",
        "18.3k",
        "50%",
        "1m30s left",
        "2.50",
        "1 of 1",
    ):
        assert shown in page
    assert 'href="/jobs/clicks"' in page
    assert 'href="/jobs/census"' not in page
    part = client.get("/", params={"part": True}).text
    assert "<html" not in part
    assert "census" in part


def test_page_by_page(client: TestClient, home: state_dirs.Home) -> None:
    for number in range(51):
        filled_homes.fill(home, f"job-{number}", submitted_at=1e9 + number)
    first = client.get("/").text
    assert "50 of 51" in first
    (link,) = html_pages.links(first, rel="next")
    assert "job-0<" in client.get(link).text


@pytest.mark.parametrize("query", [{"label": "a=b=c"}, {"phase": "nonsense"}, {"after": "nonsense"}])
def test_what_is_wrong_is_said_on_the_page(client: TestClient, query: dict[str, str]) -> None:
    answer = client.get("/", params=query)
    assert answer.status_code == 200
    assert 'role="alert"' in answer.text
