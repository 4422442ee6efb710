"""An agent passes on to others what a coordinator asks for everywhere."""

from __future__ import annotations

import contextlib
import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ports

from paceline.agent.paceline_agent import configs, passing
from paceline.agent.paceline_agent.profiles import Profiles

NAME = "2026-01-02T03-04-05.678Z"
REQUEST = f"{NAME} profile 1000 7.500"


class Others:
    """Stands for the agents of other pods: notes what it is asked.

    Attributes:
        port: at which it answers, only at 127.0.0.1.
        asked: the paths, in their order.
        status: what it answers.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.tokens: set[str | None] = set()
        self.status = 202
        others = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                others.asked.append(self.path)
                others.tokens.add(self.headers["Authorization"])
                self.send_response(others.status)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 64  # All that are asked at once.

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port

    @contextlib.contextmanager
    def answering(self) -> Iterator[Others]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Iterator[Others]:
    monkeypatch.setattr(passing, "SECONDS", 600.0)
    with Others().answering() as found:
        yield found


def test_all_are_asked(others):
    assert passing.ask(["127.0.0.1"] * 40, others.port, "/traces/x?profile=1000&at=7.5") is None
    assert others.asked == ["/traces/x?profile=1000&at=7.5"] * 40


def test_it_is_said_how_many_cannot_be_asked(others):
    found = passing.ask(["127.0.0.1", "127.0.0.9", "127.0.0.9"], others.port, "/")
    assert found.startswith("2 of 3 other agents cannot be asked: 127.0.0.9: ")
    others.status = 405
    found = passing.ask(["127.0.0.1"], others.port, "/")
    assert found == "1 of 1 other agents cannot be asked: 127.0.0.1 answers 405"


@pytest.mark.parametrize(
    ("text", "role", "times"),
    [
        (f"{REQUEST} everywhere\n", "chief", 2),
        (f"{REQUEST}\n", "chief", 0),
        (f"{REQUEST} everywhere\n", "worker", 0),
        (f"{NAME}\n", "chief", 0),
    ],
    ids=["coordinator", "user", "not its agent", "of sessions"],
)
def test_a_coordinators_agent_passes_its_request_on(others, tmp_path, text, role, times):
    """Once, to all but itself and the evaluator; what a user asks for reaches every agent anyhow."""
    asked = profiles(tmp_path, role, others.port)
    (tmp_path / "traces" / "request").write_text(text)
    before = set(threading.enumerate())
    for _ in range(3):
        asked.tick()
    wait_for_threads(before)
    expected = f"/traces/{NAME}?profile=1000&at=7.500"
    assert others.asked == [expected] * times
    assert others.tokens == ({"Bearer secret-7"} if times else set())


def test_on_one_machine_all_agents_see_the_request_themselves(others, tmp_path):
    asked = profiles(tmp_path, "chief", None)
    (tmp_path / "traces" / "request").write_text(f"{REQUEST} everywhere\n")
    before = set(threading.enumerate())
    asked.tick()
    wait_for_threads(before)
    assert others.asked == []


def profiles(folder: Path, role: str, port: int | None) -> Profiles:
    """What an agent does with requests; at the port of its server nothing listens."""
    (folder / "traces").mkdir()
    server = ports.free_port()
    hosts = {"chief": 1, "evaluator": 1, "ps": 1, "worker": 1}
    (folder / "token").write_text("secret-7\n")
    config = configs.Config(
        {
            "job": "clicks", "role": role, "index": 0, "attempt": 1, "command": ["train"], "spool": "spool",
            "cluster": {role: [f"127.0.0.1:{server}"] * count for role, count in hosts.items()},
            "exit": "exit", "reports": "reports", "placeholders": {"run_dir": str(folder)},
            "metrics_port": port, "token_file": str(folder / "token"),
        }
    )  # fmt: skip
    return Profiles(config)


def wait_for_threads(before: set[threading.Thread]) -> None:
    """Wait until those that were begun meanwhile have ended; one that is not started yet cannot be joined."""
    deadline = time.monotonic() + 120
    while set(threading.enumerate()) - before:
        assert time.monotonic() < deadline
        time.sleep(0.005)
