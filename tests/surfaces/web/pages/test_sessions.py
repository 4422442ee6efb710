"""How a browser comes in and leaves."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

HTML = {"Accept": "text/html"}


def test_the_link_leaves_a_cookie_that_only_this_server_sees(stranger: TestClient) -> None:
    answer = stranger.get("/enter", params={"token": "the-token"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("paceline-http=the-token;")
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
    assert stranger.get("/jobs/nobody", headers=HTML).status_code == 404


@pytest.mark.parametrize("form", [{"token": "wrong"}, {}, {"token": "%ff\0"}])
def test_a_wrong_token_does_not_let_in(stranger: TestClient, form: dict[str, str]) -> None:
    answer = stranger.post("/enter", data=form, headers=HTML)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_tokens_cannot_be_guessed_by_the_form(stranger: TestClient) -> None:
    answers = [stranger.post("/enter", data={"token": "x"}).status_code for _ in range(21)]
    assert answers == [401] * 20 + [429]
