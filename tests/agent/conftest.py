"""Runs the real agent as a process, in a folder of its own."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

AGENT = pathlib.Path(__file__).parents[2] / "src" / "paceline" / "agent" / "agent.py"


def wait_until(condition: Callable[[], Any], seconds: float = 240.0) -> Any:
    """Poll until the condition gives something true, and return that."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"still not true after {seconds} s")


class Replica:
    """One agent process with its files."""

    wait_until = staticmethod(wait_until)

    def __init__(self, folder: pathlib.Path, **fields: Any) -> None:
        self.folder = folder
        self.spool, self.exit, self.reports = (folder / name for name in ("spool", "exit", "reports"))
        self.config: dict[str, Any] = {
            "job": "clicks",
            "role": "worker",
            "index": 1,
            "attempt": 1,
            "command": ["true"],
            "cluster": {"ps": ["h0:2222"], "worker": ["h1:2222", "h2:2222"], "evaluator": ["h3:2222"]},
            "threads": None,
            "cpu_cores": None,
            "placeholders": {"run_dir": "/runs/7", "checkpoint_dir": "/runs/7/checkpoints"},
            "environment": {},
            "spool": str(self.spool),
            "exit": str(self.exit),
            "reports": str(self.reports),
            "sample_seconds": 0.05,
            "grace_seconds": 10.0,
            "interface": "lo",
            "own_cgroup": False,
            "supervisor_lock": None,
            "orphan_seconds": 0.5,
            **fields,
        }
        self.process: subprocess.Popen[str] | None = None

    def start(
        self,
        python: str = sys.executable,
        environment: dict[str, str] | None = None,
        wrapper: tuple[str, ...] = (),
        before: Callable[[], None] | None = None,
    ) -> subprocess.Popen[str]:
        path = self.folder / "config.json"
        path.write_text(json.dumps(self.config))
        self.process = subprocess.Popen(
            [*wrapper, python, "-W", "error", str(AGENT), str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={**os.environ, **(environment or {})},
            preexec_fn=before,
        )
        return self.process

    def finish(self) -> tuple[int, str, str]:
        assert self.process is not None
        output, errors = self.process.communicate(timeout=240)
        return self.process.returncode, output, errors

    def run(self, **how: Any) -> tuple[int, str, str]:
        self.start(**how)
        return self.finish()

    def lines(self, kind: str | None = None) -> list[dict[str, Any]]:
        if not self.spool.exists():
            return []
        complete = [line for line in self.spool.read_text().splitlines(keepends=True) if line.endswith("\n")]
        parsed = [json.loads(line) for line in complete]
        return [line for line in parsed if kind is None or line["type"] == kind]

    def reason(self) -> dict[str, Any]:
        return dict(json.loads(self.exit.read_text()))

    def number_in(self, name: str) -> int:
        """Wait for a file that the command writes a number to, and return the number."""
        path = self.folder / name
        return int(wait_until(lambda: path.exists() and path.read_text().strip()))


@pytest.fixture
def replica(tmp_path: pathlib.Path) -> Iterator[Callable[..., Replica]]:
    made: list[Replica] = []

    def make(*command: str, **fields: Any) -> Replica:
        made.append(Replica(tmp_path, command=list(command), **fields))
        return made[-1]

    yield make
    for one in made:
        if one.process is not None and one.process.poll() is None:
            one.process.send_signal(signal.SIGKILL)
            one.process.communicate()
