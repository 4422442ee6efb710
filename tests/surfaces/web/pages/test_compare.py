"""The page of runs side by side, and what the API says of them."""

from __future__ import annotations

from starlette.testclient import TestClient
from support import filled_homes

from paceline.services.local import state_dirs


def test_jobs_are_chosen_and_compared(client: TestClient, recorded: str, home: state_dirs.Home) -> None:
    filled_homes.fill(home, "census")
    assert f'form="chosen" name="job" value="{recorded}"' in client.get("/").text
    page = client.get("/compare").text
    assert f'<input type="checkbox" name="job" value="{recorded}">' in page
    one = client.get("/compare", params={"job": recorded}).text
    assert f'value="{recorded}" checked' in one
    assert "not enough data" not in one
    page = client.get("/compare", params={"job": [recorded, "census"]}).text
    for shown in ("not enough data", 'href="/rules/PS101"', 'class="added"', '<svg class="strip marks"'):
        assert shown in page
    assert client.get("/compare", params={"job": [recorded, "missing"]}).status_code == 404


def test_more_jobs_than_are_compared_at_once(
    client: TestClient, recorded: str, home: state_dirs.Home
) -> None:
    names = [filled_homes.fill(home, f"job-{number}").name for number in range(6)]
    page = client.get("/compare", params={"job": [recorded, *names]}).text
    assert "left out: 1" in page
    assert client.get("/api/v1/compare", params={"job": [recorded, *names]}).status_code == 422
    assert client.get("/api/v1/compare").status_code == 422


def test_by_the_api(client: TestClient, recorded: str, home: state_dirs.Home) -> None:
    filled_homes.fill(home, "census")
    said = client.get("/api/v1/compare", params={"job": [recorded, "census"]}).json()
    first, other = said["items"]
    assert (first["verdict"], other["verdict"]) == ("baseline", "not enough data")
    assert first["examples_per_second"]["low"] < first["examples_per_second"]["middle"]
    assert other["examples_per_second"] is None
    assert first["causes"][0]["code"] == "PS101"
    assert other["diff"].startswith("---")
