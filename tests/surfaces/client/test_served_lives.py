"""The command line, as processes, over a real server: the whole life of a job, and a server that dies."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.kills import until

import paceline
from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import state_dirs

Start = Callable[..., Any]
JobFile = Callable[..., str]
Verb = Callable[..., "subprocess.CompletedProcess[str]"]
PROGRAM = [sys.executable, "-c", "from paceline.surfaces.cli.main import main; main()"]

COUNTING = """
import os, time
for number in range(100_000):
    print('line', number, flush=True)
    if os.path.exists(os.environ['PACELINE_RUN_DIR'] + '/go'): break
    time.sleep(0.02)
"""


class Server:
    """A server as a process, that can be killed and begun again on the same port."""

    def __init__(self, home: state_dirs.Home) -> None:
        self._home = home
        self.port = "0"
        self.begin()

    def begin(self) -> None:
        command = [*PROGRAM, "serve", "--port", self.port, "--home", str(self._home.path)]
        environment = {name: value for name, value in os.environ.items() if name != "PACELINE_SERVER"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().partition("/enter")[0]
        self.port = self.url.rpartition(":")[2]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def server(home: state_dirs.Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    made = Server(home)
    try:
        yield made
    finally:
        made.kill()


@pytest.fixture
def verb(server: Server, tmp_path: Path) -> Verb:
    """Runs a command line on a machine that has nothing but the token."""

    def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*PROGRAM, *arguments], env=elsewhere(server, tmp_path), cwd=tmp_path,
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


def elsewhere(server: Server, tmp_path: Path) -> dict[str, str]:
    token = (server._home.path / "server.token").read_text()
    given = {"PACELINE_SERVER": server.url, "PACELINE_TOKEN": token, "PACELINE_HOME": str(tmp_path / "none")}
    return {**os.environ, **given}


def followed(server: Server, tmp_path: Path) -> tuple[subprocess.Popen[str], Path]:
    """Follow the output of the job; return the process, and the file that has what it prints."""
    path = tmp_path / "out"
    with path.open("w") as out:
        process = subprocess.Popen(
            [*PROGRAM, "logs", "-f", "tiny"], env=elsewhere(server, tmp_path), stdout=out,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    return process, path


def await_more(path: Path) -> None:
    """Wait until a file has grown."""
    size = path.stat().st_size
    until(lambda: path.stat().st_size > size, seconds=300)


@pytest.mark.slow
def test_the_whole_life(
    home: state_dirs.Home, server: Server, verb: Verb, job_file: JobFile, tmp_path: Path
) -> None:
    file = job_file(COUNTING, replicas=2)
    submitted = verb("submit", file, "-o", "json")
    assert json.loads(submitted.stdout)["name"] == "tiny"
    assert verb("wait", "tiny", "--for", "running").stdout == "tiny running\n"
    assert verb("list", "-o", "name").stdout == "tiny\n"
    following, out_file = followed(server, tmp_path)
    until(
        lambda: all(out_file.read_text().count(f"worker-{index} | line") > 10 for index in range(2)),
        seconds=300,
    )
    assert json.loads(verb("top", "tiny", "-o", "json").stdout)["kind"] == "Snapshot"
    assert "tiny" in verb("why", "tiny").stdout
    assert verb("get", "tiny").stdout.startswith("tiny  running")
    assert "worker-0" in verb("describe", "tiny").stdout
    verb("delete", "tiny", code=1)
    assert verb("stop", "tiny").stdout == "tiny stopped\n"
    _, err = following.communicate(timeout=300)
    assert following.returncode == 0, err
    lines = out_file.read_text().splitlines()
    for replica in ("worker-0", "worker-1"):
        numbers = [int(line.split()[-1]) for line in lines if line.startswith(f"{replica} | line")]
        assert numbers == list(range(len(numbers)))
    assert verb("resume", "tiny").stdout == "tiny resumed\n"
    (home.folder("tiny").path / "go").touch()
    assert verb("wait", "tiny", "--timeout", "300s").stdout == "tiny succeeded\n"
    verb("record", "tiny")
    assert "tiny" in verb("why", "tiny.parquet").stdout
    verb("report", "tiny")
    assert (tmp_path / "tiny-report.html").stat().st_size > 10_000
    assert "line 0" in verb("logs", "tiny", "--attempt", "1").stdout
    assert "worker-0 | line" in verb("logs", "tiny", "--tail", "1").stdout
    verb("trace", "tiny", "--last", code=3)
    assert verb("get", "missing", code=3).stderr.startswith("error: ")
    again = verb("submit", file)
    assert "this one is tiny-2" in again.stderr
    assert verb("prune", "--older-than", "0s").stdout == "tiny deleted\n"
    assert verb("delete", "--force", "tiny-2").stdout == "tiny-2 deleted\n"
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_a_server_that_is_killed_in_the_middle_is_waited_for(
    home: state_dirs.Home, server: Server, verb: Verb, job_file: JobFile, tmp_path: Path
) -> None:
    verb("submit", job_file(COUNTING))
    verb("wait", "tiny", "--for", "running")
    following, out_file = followed(server, tmp_path)
    for _ in range(2):
        await_more(out_file)
        server.kill()
        server.begin()
    await_more(out_file)
    (home.folder("tiny").path / "go").touch()
    _, err = following.communicate(timeout=300)
    assert following.returncode == 0, err
    assert "tiny is succeeded" in err
    numbers = [int(line.split()[-1]) for line in out_file.read_text().splitlines()]
    kept = (home.folder("tiny").path / "logs" / "worker-0.1.log").read_text().split("\n")[:-1]
    assert numbers == [int(line.split()[-1]) for line in kept]


@pytest.mark.slow
@pytest.mark.nightly
def test_run_detaches_and_a_wrong_token_is_said(
    server: Server, verb: Verb, job_file: JobFile, tmp_path: Path
) -> None:
    run = subprocess.Popen(
        [*PROGRAM, "run", job_file(COUNTING)], env=elsewhere(server, tmp_path), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert run.stderr is not None
    told = iter(run.stderr.readline, "")
    assert "tiny submitted; Ctrl-C detaches" in next(told)
    assert any("tiny" in line and re.search("running|started", line) for line in told)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    assert "detached: tiny goes on" in err
    wrong = subprocess.run(
        [*PROGRAM, "list"], env={**elsewhere(server, tmp_path), "PACELINE_TOKEN": "not-it"},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert wrong.returncode == 1
    assert "the token is wrong" in wrong.stderr
    assert "not-it" not in wrong.stderr
    verb("delete", "--force", "tiny")


@pytest.mark.slow
@pytest.mark.nightly
def test_python(home: state_dirs.Home, server: Server, job_file: JobFile) -> None:
    """On the server's machine the token is in the home, and paths mean the same."""
    job = paceline.submit(job_file("open('beside', 'w').write('x'); print('hello')"), server=server.url)
    assert job.wait(timeout=300, check=True) is JobPhase.SUCCEEDED
    assert [line.text for line in job.logs()] == ["hello"]
    assert (Path(job_file("")).parent / "beside").read_text() == "x"
    assert len(job.samples()) >= 0
    assert job.why().job == "tiny"
    assert [each.name for each in paceline.list(server=server.url)] == ["tiny"]
    assert "succeeded" in repr(paceline.get("tiny", server=server.url))
    with pytest.raises(paceline.InvalidInput, match="only through one of them"):
        paceline.get("tiny", server=server.url, engine="local")
    job.delete()
