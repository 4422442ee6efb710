"""How a browser comes in and leaves."""

from __future__ import annotations

import re
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from paceline.services.local import jobs
from paceline.stores import tables
from paceline.surfaces.web import tickets
from paceline.surfaces.web.gates import TokenGate

HTML = {"Accept": "text/html"}


def test_the_link_leaves_a_cookie_that_only_this_server_sees(stranger: TestClient) -> None:
    answer = stranger.get("/enter", params={"token": "the-token"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert re.match("paceline-http=[A-Za-z0-9_-]{43};", cookie)
    assert "the-token" not in cookie
    assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert stranger.get("/", headers=HTML).status_code == 200
    stranger.post("/leave")
    assert stranger.get("/", headers=HTML).status_code == 401


def test_the_token_can_be_entered(stranger: TestClient) -> None:
    asked = stranger.get("/", headers=HTML)
    assert asked.status_code == 401
    assert '<form method="post" action="/enter">' in asked.text
    assert stranger.post("/enter", data={"token": " the-token "}, headers=HTML).status_code == 200
    assert stranger.get("/jobs/missing", headers=HTML).status_code == 404


OTHER_SITES = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://testserver"},
    {"Origin": "http://evil.example"},
    {"Origin": "http://testserver:81"},
    {"Origin": "null"},
]
OWN_SITE = [
    {},
    {"Sec-Fetch-Site": "same-origin", "Origin": "null"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": "http://testserver"},
]


@pytest.mark.parametrize("headers", OTHER_SITES)
def test_another_site_can_neither_log_a_browser_in_nor_out(
    stranger: TestClient, headers: dict[str, str]
) -> None:
    answer = stranger.post("/enter", data={"token": "the-token"}, headers=HTML | headers)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    stranger.get("/enter", params={"token": "the-token"})
    assert stranger.post("/leave", headers=HTML | headers).status_code == 403
    assert stranger.get("/", headers=HTML).status_code == 200


@pytest.mark.parametrize("headers", OWN_SITE)
def test_the_own_pages_log_a_browser_in_and_out(stranger: TestClient, headers: dict[str, str]) -> None:
    stranger.post("/enter", data={"token": "the-token"}, headers=HTML | headers)
    assert stranger.get("/", headers=HTML).status_code == 200
    stranger.post("/leave", headers=HTML | headers)
    assert stranger.get("/", headers=HTML).status_code == 401


@pytest.mark.parametrize("form", [{"token": "wrong"}, {}, {"token": "%ff\0"}])
def test_a_wrong_token_does_not_let_in(stranger: TestClient, form: dict[str, str]) -> None:
    answer = stranger.post("/enter", data=form, headers=HTML)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_tokens_cannot_be_guessed_by_the_form(stranger: TestClient) -> None:
    answers = [stranger.post("/enter", data={"token": "x"}).status_code for _ in range(21)]
    assert answers == [401] * 20 + [429]


def test_a_session_is_no_token_and_ends_for_all_who_have_it(
    stranger: TestClient, api: jobs.Jobs, clock
) -> None:
    stranger.get("/enter", params={"token": "the-token"})
    ticket = stranger.cookies["paceline-http"]
    assert ticket not in str(_rows(api))  # Nor does the store have what opens it.
    assert b"the-token" not in b"".join(row.sealed for row in _rows(api))
    bearer = {"Authorization": f"Bearer {ticket}"}
    assert stranger.get("/api/v1/jobs", headers=bearer).status_code == 401
    stranger.post("/leave")
    stolen = {"Cookie": f"paceline-http={ticket}"}
    assert stranger.get("/api/v1/jobs", headers=stolen).status_code == 401
    assert not _rows(api)


def test_a_session_ends_by_itself(stranger: TestClient, api: jobs.Jobs, clock) -> None:
    stranger.get("/enter", params={"token": "the-token"})
    api.store.begin_session(
        "later", who="bob", sealed=b"", at=2e9, ends_at=3e9, most=9
    )  # The others are over.
    clock.now += tickets.REMEMBERED_SECONDS
    assert stranger.get("/api/v1/jobs").status_code == 401


def test_with_another_token_its_sessions_are_over(stranger: TestClient, api: jobs.Jobs, clock) -> None:
    stranger.get("/enter", params={"token": "the-token"})
    stranger.app.state.site.gate = TokenGate("another-token", "ann")
    assert stranger.get("/api/v1/jobs").status_code == 401


def test_a_stale_session_leads_to_the_entrance_however_often(stranger: TestClient) -> None:
    stale = {"Cookie": f"paceline-http={'x' * 43}"}
    answers = {stranger.get("/", headers=HTML | stale).status_code for _ in range(30)}
    assert answers == {401}
    asked = stranger.post("/enter", data={"token": "the-token"}, headers=HTML, follow_redirects=False)
    assert asked.status_code == 303


def test_a_browser_that_comes_from_a_file_goes_on_from_a_page_of_the_server(stranger: TestClient) -> None:
    """It would not bring its cookie where it is sent on from elsewhere."""
    answer = stranger.get(
        "/enter",
        params={"token": "the-token"},
        headers=HTML | {"Sec-Fetch-Site": "cross-site"},
        follow_redirects=False,
    )
    assert answer.status_code == 200
    assert '<meta http-equiv="refresh" content="0; url=/">' in answer.text
    assert "the-token" not in answer.text
    assert stranger.get("/", headers=HTML).status_code == 200


def _rows(api: jobs.Jobs) -> list[Any]:
    with api.store._database.reading() as connection:
        return list(connection.execute(sa.select(tables.sessions)))
