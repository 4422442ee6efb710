"""Jobs are followed as they go on, with connections that break."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient
from support import filled_homes
from support.event_streams import Sent, sent

from paceline.services import homes, jobs
from paceline.surfaces.web import feeds

Sleeping = Callable[[str], str]


def follow(client: TestClient, name: str, last: int = 0, **params: bool) -> list[Sent]:
    headers = {"Last-Event-ID": str(last)}
    with client.stream("GET", f"/api/v1/jobs/{name}/stream", headers=headers, params=params) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        return list(sent(answer.iter_lines()))


def test_a_job_is_followed_to_its_end(
    client: TestClient, api: jobs.Jobs, sleeping: Sleeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "LOOK_SECONDS", 0.05)
    source = sleeping("clicks").replace('worker: {replicas: 2, max_replicas: 4, command: [sleep, "600"]}',
                                        'worker: {replicas: 2, command: [sleep, "2"]}')  # fmt: skip
    client.post("/api/v1/jobs", json={"source": source}).raise_for_status()
    found = follow(client, "clicks")
    kinds = [each.kind for each in found]
    assert kinds[-1] == "end"
    assert "digest" in kinds  # How many, depends on how fast the machine is.
    told = [each for each in found if each.kind == "event"]
    assert [(each.id, each.data["id"]) for each in told] == [
        (str(number), number) for number, _ in api.events("clicks")
    ]
    assert told[-1].data["kind"] == "succeeded"
    # A connection that broke goes on behind the last event that was seen.
    again = [each for each in follow(client, "clicks", int(told[1].id or 0)) if each.kind == "event"]
    assert again == told[2:]


def test_many_follow_with_one_look(client: TestClient, home: homes.Home, api: jobs.Jobs) -> None:
    filled_homes.fill(home, "census", loads=(0.5, 0.9), steps=3)
    first = follow(client, "census")
    assert [each.kind for each in first] == ["digest", "end"]
    assert first[0].data["imbalance"] == pytest.approx(0.9 / 0.7)
    whole = follow(client, "census", snapshots=True)
    assert [each.kind for each in whole] == ["snapshot", "end"]
    assert whole[0].data == client.get("/api/v1/jobs/census/snapshot").json()


def test_what_is_not_there_is_not_followed(client: TestClient) -> None:
    assert client.get("/api/v1/jobs/nobody/stream").status_code == 404


@pytest.mark.parametrize("last", ["x", "-1", str(2**63)])
def test_a_number_that_is_none(client: TestClient, home: homes.Home, last: str) -> None:
    filled_homes.fill(home, "census")
    assert client.get("/api/v1/jobs/census/stream", headers={"Last-Event-ID": last}).status_code == 422
