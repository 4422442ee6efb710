"""The pages of the catalogue."""

from __future__ import annotations

from starlette.testclient import TestClient

from paceline.services.local import jobs
from paceline.surfaces import explanations
from paceline.surfaces.web.pages.rendering import coded


def test_all_codes_and_those_that_are_searched_for(client: TestClient) -> None:
    page = client.get("/rules").text
    assert all(f'href="/rules/{each.code}"' in page for each in explanations.entries())
    found = client.get("/rules", params={"search": "memory LIMIT", "part": True}).text
    assert "<html" not in found
    assert 'href="/rules/MEM001"' in found
    assert 'href="/rules/PS101"' not in found
    assert "No rule says that." in client.get("/rules", params={"search": "<b>"}).text


def test_every_code_has_a_page(client: TestClient) -> None:
    for entry in explanations.entries():
        answer = client.get(f"/rules/{entry.code}")
        assert answer.status_code == 200, entry.code
        assert f">{entry.code}</span>" in answer.text


def test_the_page_of_a_cause_has_its_thresholds(client: TestClient) -> None:
    page = client.get("/rules/hot-ps").text
    assert "<code>hot-servers.resting</code>" in page
    assert "<td>0.25</td>" in page


def test_what_the_site_has_set_stands_with_its_default(client: TestClient, api: jobs.Jobs) -> None:
    (api.home.path / "thresholds.yaml").write_text(
        "apiVersion: paceline.dev/v1alpha1\nkind: Thresholds\nspec: {hot-servers.resting: 0.4}\n"
    )
    assert "<td>0.4 (default 0.25)</td>" in client.get("/rules/hot-ps").text


def test_a_code_that_is_none(client: TestClient) -> None:
    assert client.get("/rules/NONE999", headers={"Accept": "text/html"}).status_code == 404


def test_codes_in_a_text_lead_to_their_pages(client: TestClient, recorded: str) -> None:
    assert coded("PS101 <b> X100") == '<a href="/rules/PS101">PS101</a> &lt;b&gt; X100'
    page = client.get(f"/jobs/{recorded}").text
    assert '<a class="code warning" href="/rules/PS101">PS101</a>' in page
    assert '<a href="/rules/WRK201">WRK201</a>' in page
