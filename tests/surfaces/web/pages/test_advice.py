"""What is proposed on the page of a job, and what other layouts would bring."""

from __future__ import annotations

import html
import json
import re

import pytest
from starlette.testclient import TestClient
from support import filled_homes, kills

from paceline.services.local import state_dirs
from paceline.surfaces.web.pages.advice import _step

SAME = {"Sec-Fetch-Site": "same-origin", "HX-Request": "true"}


def test_what_if_without_a_script(client: TestClient, recorded: str) -> None:
    page = client.get(
        f"/jobs/{recorded}/what-if", params={"server_cores": 0.296, "over": "server_cores"}
    ).text
    assert '<svg class="chart ' in page
    assert "cores of ps-0" in page
    assert "cpu: 296m" in page
    assert re.search(r'name="server_cores" min="0.002" max="0.296" step="0.002" value="0.296"', page)
    part = client.get(f"/jobs/{recorded}/what-if", params={"part": True, "workers": 3}).text
    assert "<html" not in part
    assert '<output id="workers-chosen" hx-swap-oob="true">3</output>' in part


@pytest.mark.parametrize("query", [{"workers": 0}, {"servers": "x"}, {"server_cores": "nan"}])
def test_a_shape_that_is_none(client: TestClient, recorded: str, query: dict[str, object]) -> None:
    assert client.get(f"/jobs/{recorded}/what-if", params=query).status_code == 422


def test_a_shape_that_has_no_place_is_said_beside_the_sliders(client: TestClient, recorded: str) -> None:
    page = client.get(f"/jobs/{recorded}/what-if", params={"worker_cores": 900, "over": "nonsense"})
    assert page.status_code == 200
    assert "asks for 900 CPU" in page.text
    assert 'name="worker_cores"' in page.text


def test_what_if_of_a_job_that_was_not_measured(client: TestClient, home: state_dirs.Home) -> None:
    filled_homes.fill(home, "census")
    answer = client.get("/jobs/census/what-if", headers={"Accept": "text/html"})
    assert answer.status_code == 422
    assert "not measured" in answer.text


@pytest.mark.slow
def test_proposals_come_when_they_are_computed_and_carry_what_they_show(
    client: TestClient, recorded: str
) -> None:
    assert 'hx-trigger="toggle once"' in client.get(f"/jobs/{recorded}").text
    part = client.get(f"/jobs/{recorded}/proposals").text
    assert 'hx-trigger="load delay:1500ms"' in part

    def computed() -> str | None:
        text: str = client.get(f"/jobs/{recorded}/proposals").text
        return text if "proposals" in text and "hx-trigger" not in text else None

    part = kills.until(computed, seconds=600, every_seconds=0.1)
    edits = json.loads(html.unescape(re.findall(r'name="changes" value="([^"]*)"', part)[0]))
    said = client.post(f"/api/v1/jobs/{recorded}/change", json={"edits": edits, "dry_run": True}).json()
    shown = html.unescape(
        re.sub(r"</?span[^>]*>", "", re.findall(r'<pre class="diff"[^>]*>(.*?)</pre>', part, re.S)[0])
    )
    assert shown.splitlines() == said["diff"].splitlines()[2:]


def test_changes_that_cannot_be_read(client: TestClient, recorded: str) -> None:
    for given in ("", "[", '[{"path": [], "value": 1}]', "[]", '[{"path": ["spec"], "other": 1}]'):
        answer = client.post(f"/jobs/{recorded}/proposals/apply", data={"changes": given}, headers=SAME)
        assert answer.status_code == 422, given
    assert client.get("/api/v1/audits").json()["items"] == []


@pytest.mark.parametrize(
    ("cores", "step"), [(0.074, 0.002), (0.75, 0.125), (1.0, 0.25), (4.0, 1.0), (0.003, 0.001), (64.0, 1.0)]
)
def test_a_slider_can_stay_where_it_is(cores: float, step: float) -> None:
    assert _step(cores) == step
