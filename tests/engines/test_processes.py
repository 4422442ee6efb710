"""Processes are found by what they are, and watched whichever process is their parent."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paceline.engines.local import processes


def test_a_watch_reports_each_end_once_and_not_earlier() -> None:
    with (
        subprocess.Popen(["cat"], stdin=subprocess.PIPE) as first,
        subprocess.Popen(["sleep", "60"]) as second,
    ):
        watch = processes.ExitWatch()
        assert watch.add(first.pid)
        assert watch.add(second.pid)
        assert watch.wait(0.0) == []
        assert first.stdin is not None
        first.stdin.close()
        assert watch.wait(240) == [first.pid]
        assert watch.wait(0.0) == []
        processes.kill([second.pid])
        assert watch.wait(240) == [second.pid]


def test_a_process_that_is_gone_cannot_be_watched() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert not processes.ExitWatch().add(process.pid)
    processes.kill([process.pid])
    processes.terminate(process.pid)


def test_what_was_started_while_others_were_looked_up_stands_still_too() -> None:
    with contextlib.ExitStack() as stack:
        started: list[subprocess.Popen[bytes]] = []

        def start() -> None:
            process = stack.enter_context(subprocess.Popen(["sleep", "600"]))
            stack.callback(process.kill)
            started.append(process)

        def look_up() -> set[int]:
            found = {process.pid for process in started}
            if len(started) < 3:  # What was found starts another one before it stands still.
                start()
            return found

        start()
        processes.halt(look_up)
        for process in started:
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)


def test_members_are_found_by_their_environment_even_in_other_sessions(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PACELINE_RUN_DIR": str(tmp_path),
        "PACELINE_ROLE": "ps",
        "PACELINE_INDEX": "1",
    }
    with subprocess.Popen(["setsid", "sleep", "60"], env=environment):
        deadline = time.monotonic() + 240
        while not (found := processes.members(tmp_path, ("ps", 1))) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(found) == 1
        assert processes.members(tmp_path) == found
        assert processes.members(tmp_path, ("ps", 0)) == set()
        processes.kill(found)


SAYS_ITS_ENVIRONMENT = "import json, os, sys; json.dump(dict(os.environ), open(sys.argv[1], 'w'))"


def test_replicas_do_not_inherit_what_a_shell_says_of_threads_and_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "OMP_NUM_THREADS",
        "TF_NUM_INTEROP_THREADS",
        "RANK",
        "PET_NNODES",
        "MASTER_ADDR",
        "TF_CONFIG",
    ):
        monkeypatch.setenv(name, "64")
    monkeypatch.setenv("MY_RANK", "64")
    (tmp_path / "agent.py").write_text(SAYS_ITS_ENVIRONMENT)
    process = processes.start(
        tmp_path / "config",
        agent=tmp_path / "agent.py",
        log=tmp_path / "log",
        working_dir=tmp_path,
        cgroup_files=(),
        namespace=None,
    )
    assert process.wait(120) == 0, (tmp_path / "log").read_text()
    seen = json.loads((tmp_path / "config").read_text())
    assert [name for name, value in seen.items() if value == "64"] == ["MY_RANK"]


def test_an_agent_is_found_by_its_config(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    assert processes.agent_pid(config) is None
    script = "import time; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script, str(config)]) as process:
        deadline = time.monotonic() + 240
        while processes.agent_pid(config) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert processes.agent_pid(config) == process.pid
        processes.kill([process.pid])
