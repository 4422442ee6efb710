"""A job is submitted from its page."""

from __future__ import annotations

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
