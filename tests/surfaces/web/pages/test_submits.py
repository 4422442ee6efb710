"""A job is submitted from its page."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from paceline.services.local import jobs

Sleeping = Callable[[str], str]
SAME = {"Sec-Fetch-Site": "same-origin"}


def test_a_job_is_submitted_and_shown(client: TestClient, api: jobs.Jobs, sleeping: Sleeping) -> None:
    assert "<textarea" in client.get("/submit").text
    source = sleeping("clicks").replace("\n", "\r\n")
    answer = client.post("/submit", data={"source": source}, headers=SAME)
    assert str(answer.url).endswith("/jobs/clicks")
    assert api.get("clicks").source == sleeping("clicks")
    assert 'hx-post="/jobs/clicks/stop"' in answer.text
    assert client.post("/jobs/clicks/stop", headers=SAME).status_code == 200


def fields_of(page: str) -> dict[str, str]:
    """Return the hidden fields of the form on a page."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))


def test_a_form_that_is_sent_twice_makes_one_job(
    client: TestClient, api: jobs.Jobs, sleeping: Sleeping
) -> None:
    form = {**fields_of(client.get("/submit").text), "source": sleeping("clicks")}
    for _ in range(2):
        assert str(client.post("/submit", data=form, headers=SAME).url).endswith("/jobs/clicks")
    assert [run.name for run in api.runs()] == ["clicks"]
    # Another form means another job, and so does another text in the same form.
    anew = {**fields_of(client.get("/submit").text), "source": sleeping("clicks")}
    assert str(client.post("/submit", data=anew, headers=SAME).url).endswith("/jobs/clicks-2")
    other = {**form, "source": sleeping("other")}
    assert str(client.post("/submit", data=other, headers=SAME).url).endswith("/jobs/other")
    for name in ("clicks", "clicks-2", "other"):
        client.post(f"/jobs/{name}/stop", headers=SAME)


def test_a_form_stays_the_same_when_it_comes_back_with_a_complaint(client: TestClient) -> None:
    form = {**fields_of(client.get("/submit").text), "source": "a"}
    answer = client.post("/submit", data=form, headers=SAME)
    assert answer.status_code == 422
    assert fields_of(answer.text)["form"] == form["form"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("replicas: 2", "replicas: two"), "spec.roles.worker.replicas"),
        (("replicas: 2", "replicas: 2, restart: {when: always}"), "JOB302"),
        (("kind: TrainingJob", "kind: <b>"), "&lt;b&gt;"),
    ],
)
def test_what_is_wrong_is_said_beside_what_was_entered(
    client: TestClient, sleeping: Sleeping, change: tuple[str, str], said: str
) -> None:
    answer = client.post(
        "/submit", data={"source": sleeping("clicks").replace(*change), "fail_on": "error"}, headers=SAME
    )
    assert answer.status_code == 422
    assert said in answer.text
    assert "metadata: {name: clicks" in answer.text


@pytest.mark.parametrize("form", [{}, {"source": "a", "fail_on": "x"}, {str(n): "" for n in range(100)}])
def test_a_form_that_is_wrong(client: TestClient, form: dict[str, str]) -> None:
    assert client.post("/submit", data=form, headers=SAME).status_code == 422
