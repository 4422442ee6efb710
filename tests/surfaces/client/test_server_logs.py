"""Output through a server: every line once, whenever pages end and connections break."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from support import filled_homes

from paceline.model.jobs.runs import Run
from paceline.model.roles import Role
from paceline.services.local import jobs, state_dirs
from paceline.services.logs import LogSelection
from paceline.surfaces.client import server_logs
from paceline.surfaces.client.connections import ServerConnection
from paceline.surfaces.client.server_jobs import ServerJobs
from paceline.surfaces.web.routes import logs as routes


@pytest.fixture
def run(home: state_dirs.Home) -> Run:
    """A job that has begun, whose replicas have printed something."""
    found = filled_homes.fill(home, "census")
    (Path(found.directory) / "logs").mkdir(parents=True)
    write(found, "ps-0.1", "serving\n")
    write(found, "worker-0.1", "".join(f"step {number}\n" for number in range(100)))
    write(found, "worker-0.2", "step 100\nstep 101\nhalf a")
    return found


def write(run: Run, name: str, text: str) -> None:
    with (Path(run.directory) / "logs" / f"{name}.log").open("a") as file:
        file.write(text)


def texts(of: ServerJobs | jobs.Jobs, run: Run, **wanted: object) -> list[str]:
    return [f"{each.replica} {each.text}" for each in of.logs(run, LogSelection(**wanted))]  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [1, 3, 5000])
def test_what_is_there(
    run: Run, api: jobs.Jobs, served: ServerJobs, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_logs, "PAGE_LINES", limit)
    for wanted in (
        {},
        {"tail": 2},
        {"tail": 0},
        {"attempt": 2},
        {"replica": lambda replica: replica.role is Role.PS},
        {"since": 2e9},
        {"since": 1e9, "tail": 1},
    ):
        assert texts(served, run, **wanted) == texts(api, run, **wanted), wanted
    assert texts(served, run, tail=1) == ["ps-0 serving", "worker-0 step 99", "worker-0 half a"]


def test_what_comes_is_read_on(run: Run, served: ServerJobs) -> None:
    def printed() -> Iterator[bool]:
        write(run, "worker-0.2", " line\n")
        yield True
        write(run, "worker-1.1", "new\nand ")
        yield True
        write(run, "ps-0.1", "bye\n")
        yield False

    goes_on = printed()
    found = [line.text for line in served.logs(run, LogSelection(tail=1), follow=lambda: next(goes_on))]
    assert found == ["serving", "step 99", "half a line", "new", "bye", "and "]


class Breaking:
    """Lets requests of a connection fail now and then, also after the server has answered."""

    def __init__(self, connection: ServerConnection, monkeypatch: pytest.MonkeyPatch) -> None:
        self._send = connection._client.send
        self._random = random.Random(7)
        self.broken = 0
        monkeypatch.setattr(connection._client, "send", self.send)
        monkeypatch.setattr(connection, "_pauses_seconds", (0.0,) * 30)

    def send(self, *arguments: object, **options: object) -> object:
        chance = self._random.random()
        if chance < 0.2:
            self.broken += 1
            raise httpx2.ConnectError("refused")
        answer = self._send(*arguments, **options)
        if chance < 0.5:
            self.broken += 1
            raise httpx2.ReadError("reset")
        return answer


def test_no_line_is_lost_or_there_twice_when_connections_break(
    run: Run,
    api: jobs.Jobs,
    connection: ServerConnection,
    served: ServerJobs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served.get("census")
    breaking = Breaking(connection, monkeypatch)
    monkeypatch.setattr(server_logs, "PAGE_LINES", 7)
    monkeypatch.setattr(ServerJobs, "POLL_SECONDS", 0.0)
    rounds = 0

    def printed() -> bool:
        nonlocal rounds
        rounds += 1
        for name in ("worker-0.2", "worker-1.1"):
            write(run, name, f"{name} {rounds}\rand more\nto")
        return rounds < 20

    found = [line.text for line in served.logs(run, follow=printed)]
    assert breaking.broken > 20
    assert sorted(found) == sorted(line.text for line in api.logs(run))


def test_a_line_that_is_not_read_to_its_end_says_so(run: Run, served: ServerJobs) -> None:
    write(run, "ps-0.1", "x" * 10_000_000 + "\n\x1b[31m<script>\x07\n")
    found = texts(served, run, replica=lambda replica: replica.role is Role.PS)
    assert found[1] == "ps-0 " + "x" * routes.LINE_CHARACTERS + server_logs.CUT
    assert found[2] == "ps-0 \x1b[31m<script>\x07"


def test_many_replicas_are_not_all_named(
    run: Run, served: ServerJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_logs, "MOST_NAMED", 1)
    assert len(texts(served, run, replica=lambda replica: replica.role is Role.WORKER)) == 103
