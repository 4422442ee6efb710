"""What a command does that its exit code does not show, seen in real files and processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.agent.paceline_agent import oddities

BEGAN = 100.0


@pytest.fixture
def output(tmp_path: Path) -> Iterator[int]:
    with (tmp_path / "worker-0.1.log").open("wb") as file:
        yield file.fileno()


@pytest.fixture
def watch(tmp_path: Path, output: int) -> oddities.Watch:
    return oddities.Watch(str(tmp_path / "reports.jsonl"), BEGAN, output)


def own(tmp_path: Path, pid: object) -> None:
    (tmp_path / "reports.jsonl.owner").write_text(str(pid))


@pytest.mark.parametrize(
    ("mebibytes", "seconds", "said"),
    [
        (118, 120.0, ["118 MiB of output in 120 s"]),
        (49, 1.0, []),  # It may be a long description of a model.
        (118, 3600.0, []),  # It is a lot in an hour, but costs nothing.
    ],
)
def test_a_flood(watch: oddities.Watch, output: int, mebibytes: int, seconds: float, said: list[str]) -> None:
    os.truncate(output, mebibytes << 20)
    for wait in (0.0, 10.0):  # It is said once.
        found = [line["message"] for line in watch.look(BEGAN + seconds + wait)]
        assert found == (said if not wait else [])


def test_a_pipe_has_no_size(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        assert oddities.Watch(str(tmp_path / "reports.jsonl"), BEGAN, writing).look(BEGAN + 1) == []
    finally:
        os.close(reading)
        os.close(writing)


def test_a_command_that_outlives_its_trainer(watch: oddities.Watch, tmp_path: Path) -> None:
    assert watch.look(BEGAN) == [], "nothing trains"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        own(tmp_path, process.pid)
        assert watch.look(BEGAN + 1000) == []
        assert process.stdin is not None
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        # It has ended, though its parent has not asked for its status.
        assert watch.look(BEGAN + 1010) == []
        assert watch.look(BEGAN + 1069) == []
        (line,) = watch.look(BEGAN + 1070)
        assert line["type"] == "outlived"
        assert line["message"] == f"process {process.pid}, which trained, has ended; the command goes on"
        assert watch.look(BEGAN + 5000) == []
    own(tmp_path, os.getpid())  # Another one trains.
    assert watch.look(BEGAN + 6000) == []


LISTENS = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def listener() -> Iterator[tuple[int, int]]:
    """Start a process that listens; return its number and its port."""
    with subprocess.Popen(
        [sys.executable, "-c", LISTENS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
        process.stdin.close()


def test_a_process_that_listens_elsewhere(tmp_path: Path, output: int, listener: tuple[int, int]) -> None:
    pid, port = listener
    own_port = port + 1 if port < 65535 else port - 1
    watch = oddities.Watch(str(tmp_path / "reports.jsonl"), BEGAN, output, port=own_port)
    assert watch.look(BEGAN + 59, lambda: [pid]) == [], "it may still begin"
    assert watch.look(BEGAN + 60, list) == [], "nothing listens yet"
    (line,) = watch.look(BEGAN + 70, lambda: [pid])
    assert line["type"] == "instrumentation"
    assert line["message"] == (
        f"its cluster is not the job's: nothing listens at its port {own_port}; "
        f"its processes listen at {port}"
    )
    assert watch.look(BEGAN + 80, lambda: [pid]) == [], "it is said once"


def test_a_process_that_listens_where_others_look(
    tmp_path: Path, output: int, listener: tuple[int, int]
) -> None:
    pid, port = listener
    watch = oddities.Watch(str(tmp_path / "reports.jsonl"), BEGAN, output, port=port)
    assert watch.look(BEGAN + 60, lambda: [pid]) == []
    assert oddities.listening([pid, 2**22 + 1]) == {port}, "one of them has ended"


def test_who_holds_a_port_is_named_as_it_may_be_shown(listener: tuple[int, int]) -> None:
    pid, port = listener
    said = oddities.holder(port)
    assert said is not None
    assert said.startswith(f"process {pid} ({sys.executable} -c ")
    assert said.isprintable()
    assert len(said) < 120
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert oddities.holder(free.getsockname()[1]) is None, "nothing listens there"


@pytest.mark.parametrize(
    ("command", "shown"),
    [(b"", "unknown"), (b"a\0b c\0", "a b c"), (b"\x1b[31m\xff", "?[31m\\xff")],
)
def test_words_of_another_command_do_nothing_to_a_terminal(
    tmp_path: Path, command: bytes, shown: str
) -> None:
    (tmp_path / "cmdline").write_bytes(command)
    assert oddities.command(str(tmp_path / "cmdline")) == shown
    assert oddities.command(str(tmp_path / "missing")) == "unknown"


@given(st.text(max_size=30))
def test_any_owner(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("any")
    own(folder, text)
    watched = oddities.Watch(str(folder / "reports.jsonl"), BEGAN, 0)
    watched.look(BEGAN)
    assert [line["type"] for line in watched.look(BEGAN + 100)] in ([], ["outlived"])
