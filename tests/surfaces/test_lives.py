"""The command line over real jobs: following, detaching, lost supervisors, the whole life of a job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from support import kills, leftovers

from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import state_dirs, supervisors
from paceline.surfaces import composition

Paceline = Callable[..., Result]
JobFile = Callable[..., str]
Start = Callable[..., Any]

UNTIL_GO = """
import os, time
print('up', flush=True)
while not os.path.exists(os.environ['PACELINE_RUN_DIR'] + '/go'): time.sleep(0.05)
print('done', flush=True)
"""


def until(condition: Callable[[], object], seconds: float = 240.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def phase_of(home: state_dirs.Home, name: str) -> JobPhase | None:
    with composition.opened(home) as jobs:
        return {run.name: run.phase for run in jobs.runs()}.get(name)


def runs(home: state_dirs.Home, name: str) -> Callable[[], bool]:
    return lambda: phase_of(home, name) is JobPhase.RUNNING


def test_run_ends_with_a_summary(home: state_dirs.Home, start: Start, job_file: JobFile) -> None:
    code, out, err = start("run", job_file("print('hello')", replicas=2)).end()
    assert code == 0, err
    assert out.startswith("tiny  succeeded")
    assert "worker 2 replicas" in out
    assert err.startswith("tiny submitted; Ctrl-C detaches, the job goes on")
    assert "next: paceline top tiny" in err


def test_run_of_a_job_that_fails_exits_with_6(home: state_dirs.Home, start: Start, job_file: JobFile) -> None:
    code, out, err = start("run", "-q", job_file("raise SystemExit(3)")).end()
    assert code == 6
    assert "worker-0: the command ended with code 3" in out
    assert "no steps reported" in out
    assert err.startswith("error: tiny failed")
    assert "hint: see why: paceline why tiny" in err


def test_run_of_a_job_that_fails_shows_its_last_lines(start: Start, job_file: JobFile) -> None:
    code, _, err = start("run", job_file("raise SystemExit('no such table: users')")).end()
    assert code == 6
    assert "the last lines of worker-0:\n  no such table: users\n" in err


def test_interrupt_detaches_and_the_job_lives_on(
    home: state_dirs.Home, start: Start, paceline: Paceline, job_file: JobFile
) -> None:
    following = start("run", job_file(UNTIL_GO))
    until(runs(home, "tiny"))
    logs = start("logs", "-f", "tiny")
    assert logs.process.stdout.readline() == "up\n"
    following.process.send_signal(signal.SIGINT)
    code, _, err = following.end()
    assert code == 0
    assert "detached: tiny goes on" in err
    assert "paceline logs -f tiny" in err
    assert phase_of(home, "tiny") is JobPhase.RUNNING
    assert supervisors.is_supervised(home.folder("tiny"))

    assert paceline("wait", "tiny", "--timeout", "100ms").exit_code == 2
    assert paceline("wait", "tiny", "--timeout", "0.1s").exit_code == 5
    assert paceline("wait", "tiny", "--for", "running").stdout == "tiny running\n"
    assert paceline("resume", "tiny").exit_code == 1
    assert paceline("delete", "tiny").exit_code == 1
    assert paceline("top", "--once").stdout.startswith("tiny  running")
    stopped = paceline("stop", "tiny")
    assert (stopped.exit_code, stopped.stdout) == (0, "tiny stopped\n")
    code, _, err = logs.end()
    assert (code, "tiny is stopped" in err) == (0, True)

    assert paceline("wait", "tiny").exit_code == 6
    assert paceline("resume", "tiny").stdout == "tiny resumed\n"
    (home.folder("tiny").path / "go").touch()
    assert paceline("wait", "tiny", "--timeout", "60s").stdout == "tiny succeeded\n"
    assert paceline("delete", "tiny").stdout == "tiny deleted\n"
    assert not home.folder("tiny").path.exists()


def test_run_brings_back_a_job_whose_supervisor_dies(
    home: state_dirs.Home, start: Start, paceline: Paceline, job_file: JobFile
) -> None:
    following = start("run", job_file(UNTIL_GO))
    until(runs(home, "tiny"))
    kills.kill(leftovers.supervisor_pids(home.folder("tiny")))
    until(lambda: supervisors.is_supervised(home.folder("tiny")))
    (home.folder("tiny").path / "go").touch()
    code, _, err = following.end()
    assert code == 0, err
    assert "the supervisor of tiny died; another one has taken over" in err


def test_submit_says_what_is_next_and_delete_force_ends_it(
    home: state_dirs.Home, paceline: Paceline, job_file: JobFile
) -> None:
    file = job_file(UNTIL_GO)
    assert paceline("submit", file, "-o", "name", "--name", "mine").stdout == "mine\n"
    second = paceline("submit", file, "--name", "mine")
    assert second.stdout == "mine-2 submitted\n"
    assert "there is a job mine already" in second.stderr
    assert "paceline logs -f mine-2" in second.stderr
    assert paceline("stop", "--no-wait", "mine").stdout == "mine is asked to stop\n"
    assert paceline("delete", "--force", "mine", "mine-2").stdout == "mine deleted\nmine-2 deleted\n"
    assert paceline("list", "-o", "name").stdout == ""


@pytest.mark.parametrize("arguments", [("top", "--interval", "0.2s"), ("list", "-w"), ("get", "-w", "tiny")])
def test_live_views_on_a_terminal(
    home: state_dirs.Home, paceline: Paceline, job_file: JobFile, arguments: tuple[str, ...]
) -> None:
    assert paceline("submit", job_file(UNTIL_GO)).exit_code == 0
    code, seen = on_terminal(arguments, "tiny")
    assert code == 0, seen
    assert "\x1b[?1049h" in seen
    assert "\x1b[?1049l" in seen
    assert "Traceback" not in seen


def test_run_on_a_terminal_shows_the_job_in_place(home: state_dirs.Home, job_file: JobFile) -> None:
    code, seen = on_terminal(("run", job_file(UNTIL_GO)), "1/1 running")
    assert code == 0, seen
    assert "detached: tiny goes on" in seen
    assert "Traceback" not in seen


def on_terminal(arguments: tuple[str, ...], expected: str) -> tuple[int, str]:
    """Run a command line on a terminal of 80 x 24; interrupt it when something is seen."""
    master, slave = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from paceline.surfaces.cli.main import main; main()", *arguments],
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"},
        stdin=slave, stdout=slave, stderr=slave,
    )  # fmt: skip
    os.close(slave)
    seen = bytearray()
    reader = threading.Thread(target=_read, args=(master, seen))
    reader.start()
    try:
        until(lambda: expected in seen.decode(errors="replace") or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=240)
    finally:
        process.kill()
        process.wait()
        reader.join()
        os.close(master)
    return process.returncode, seen.decode(errors="replace")


def _read(master: int, seen: bytearray) -> None:
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:  # Linux says so when the last process has closed the other side.
            return
        if not data:
            return
        seen.extend(data)


def test_home_that_cannot_be_written_is_told(tmp_path: Path, paceline: Paceline, job_file: JobFile) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = paceline("submit", job_file("pass"), "--home", str(blocked / "home"))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
