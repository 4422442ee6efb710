"""Jobs are followed as they go on, with connections that break."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from starlette.testclient import TestClient
from support import filled_homes
from support.event_streams import Sent, sent

from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import jobs, state_dirs
from paceline.surfaces.web import callers, feeds
from paceline.surfaces.web.gates import Caller, Credentials, Gate
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.routes import logs

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
    assert "diagnosis" in kinds  # How many, depends on how fast the machine is.
    told = [each for each in found if each.kind == "event"]
    assert [(each.id, each.data["id"]) for each in told] == [
        (str(number), number) for number, _ in api.events("clicks")
    ]
    assert told[-1].data["kind"] == "succeeded"
    # A connection that broke goes on behind the last event that was seen.
    again = [each for each in follow(client, "clicks", int(told[1].id or 0)) if each.kind == "event"]
    assert again == told[2:]


def test_many_follow_with_one_look(client: TestClient, home: state_dirs.Home, api: jobs.Jobs) -> None:
    filled_homes.fill(home, "census", loads=(0.5, 0.9), steps=3)
    first = follow(client, "census")
    assert [each.kind for each in first] == ["diagnosis", "end"]
    assert first[0].data["imbalance"] == pytest.approx(0.9 / 0.7)
    whole = follow(client, "census", snapshots=True)
    assert [each.kind for each in whole] == ["snapshot", "end"]
    assert whole[0].data == client.get("/api/v1/jobs/census/snapshot").json()


def test_what_is_not_there_is_not_followed(client: TestClient) -> None:
    assert client.get("/api/v1/jobs/missing/stream").status_code == 404


@pytest.mark.parametrize("last", ["x", "-1", str(2**63)])
def test_a_number_that_is_none(client: TestClient, home: state_dirs.Home, last: str) -> None:
    filled_homes.fill(home, "census")
    assert client.get("/api/v1/jobs/census/stream", headers={"Last-Event-ID": last}).status_code == 422


@pytest.mark.parametrize("path", ["stream", "logs/stream"])
def test_a_follower_is_asked_again_who_they_are(
    client: TestClient, home: state_dirs.Home, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job may run for weeks: a token that was taken back ends what it began."""
    monkeypatch.setattr(feeds, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(logs, "LOOK_SECONDS", 0.01)
    filled_homes.fill(home, "going", phase=JobPhase.RUNNING, loads=(0.5, 0.9), steps=3)
    # The stream goes on only while a supervisor watches the job.
    monkeypatch.setattr(jobs.Jobs, "is_lost", lambda *_: False)
    gate = Turning(client.app.state.site.gate)
    client.app.state.site.gate = gate
    client.app.state.clock = ticking()
    with client.stream("GET", f"/api/v1/jobs/going/{path}") as answer:
        found = list(sent(answer.iter_lines()))
    assert found[-1].kind == "problem"
    assert "not known" in found[-1].data["detail"]
    assert gate.asked == 2 + gate.MORE, "once when it began, and once a minute"


@pytest.mark.parametrize("path", ["stream", "logs/stream"])
def test_a_follower_is_asked_again_what_they_may(
    client: TestClient, home: state_dirs.Home, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(logs, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(jobs.Jobs, "is_lost", lambda *_: False)
    filled_homes.fill(home, "going", phase=JobPhase.RUNNING, loads=(0.5, 0.9), steps=3)
    client.app.state.site.gate = Narrowing(client.app.state.site.gate)
    client.app.state.clock = ticking()
    with client.stream("GET", f"/api/v1/jobs/going/{path}") as answer:
        found = list(sent(answer.iter_lines()))
    assert found[-1].kind == "problem"
    assert found[-1].data["detail"] == "ann may not follow this any more"


def ticking() -> Callable[[], float]:
    """Return a clock on which half a minute passes whenever it is looked at."""
    ticks = itertools.count(0.0, callers.ASK_AGAIN_SECONDS / 2)
    return lambda: next(ticks)


class Turning(Gate):
    """A gate that knows no caller any more after it was asked some times."""

    MORE = 2
    is_quick = True

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.asked = 0

    def caller(self, credentials: Credentials) -> Caller | None:
        self.asked += 1
        return None if self.asked > 1 + self.MORE else self._gate.caller(credentials)

    def allows(self, caller: Caller, operation: ApiOperation, namespace: str | None) -> bool:
        return True


class Narrowing(Turning):
    """A gate that allows nothing any more but the first time."""

    def caller(self, credentials: Credentials) -> Caller | None:
        return self._gate.caller(credentials)

    def allows(self, caller: Caller, operation: ApiOperation, namespace: str | None) -> bool:
        self.asked += 1
        return self.asked == 1 and super().allows(caller, operation, namespace)
