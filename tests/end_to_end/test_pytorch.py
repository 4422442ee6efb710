"""PyTorch over three replicas: they find each other by the variables of their framework, and all-reduce."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support import interpreters, nights

SCRIPTS = Path(__file__).parents[1] / "scripts"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python() -> str:
    """An interpreter that can import PyTorch: it is no dependency of Paceline's, and large."""
    return str(interpreters.with_torch_or_skip())


class Paceline:
    """The command, with a home of its own."""

    def __init__(self, home: Path) -> None:
        self._environment = {**os.environ, "PACELINE_HOME": str(home)}

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-c", "from paceline.surfaces.cli.main import main; main()", *arguments]
        return subprocess.run(
            line, env=self._environment, capture_output=True, text=True, timeout=600, check=False
        )


@pytest.fixture
def paceline(tmp_path: Path) -> Paceline:
    return Paceline(tmp_path / "home")


def job(folder: Path, name: str, roles: str, *command: str) -> str:
    path = folder / "job.yaml"
    path.write_text(
        f"""\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  framework: pytorch
  command: {json.dumps(command)}
  roles: {{{roles}}}
  success: all-workers
"""
    )
    return str(path)


@pytest.mark.parametrize(
    "roles",
    nights.but(
        ["worker: {replicas: 3}", "chief: {}, worker: {replicas: 2}"],
        often=["chief: {}, worker: {replicas: 2}"],
    ),
)
def test_all_reduce_over_three_replicas(tmp_path: Path, paceline: Paceline, python: str, roles: str) -> None:
    file = job(tmp_path, "all-reduce", roles, python, str(SCRIPTS / "torch_all_reduce.py"))
    done = paceline("run", file)
    told = paceline("logs", "all-reduce").stdout
    assert done.returncode == 0, (done.stderr, told)
    assert sorted(line[line.index("rank") :][:16] for line in told.splitlines() if "done" in line) == [
        f"rank {rank} of 3 done" for rank in range(3)
    ]
    shown = json.loads(paceline("describe", "all-reduce", "-o", "json").stdout)
    assert "its steps, made by SGD" in json.dumps(shown)
    (*_, workers) = json.loads(paceline("top", "all-reduce", "-o", "json").stdout)["roles"]
    replicas = workers["replicas"]
    assert all(each["all_reduce_share"] > 0 and each["steps_per_second"] > 0 for each in replicas)


def causes(paceline: Paceline, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(paceline("why", name, "-o", "json").stdout)["causes"]
    return found


STRAGGLER = ("--slow-rank=2 --slow-rounds=200", "slow-rank", "worker-2", "worker-2 makes other ranks wait")


@pytest.mark.parametrize(
    ("options", "cause", "subject", "text"),
    nights.but(
        [
            ("--stop-rank=1 --stop-step=30", "hang", "worker-1", "worker-1 does not come to the all-reduce"),
            STRAGGLER,
            ("--read=0.5", "slow-storage", "worker-0", "Trainers wait for storage"),
        ],
        often=[STRAGGLER],
    ),
    ids=["hang", "straggler", "input"],
)
def test_why_names_the_cause(
    tmp_path: Path, paceline: Paceline, python: str, options: str, cause: str, subject: str, text: str
) -> None:
    command = (python, str(SCRIPTS / "foreign" / "torch_ddp.py"), "--steps=100000000", *options.split())
    file = job(tmp_path, "ranks", "worker: {replicas: 3}", *command)
    assert paceline("submit", file).returncode == 0
    said: list[dict[str, Any]] = []
    try:
        deadline = time.monotonic() + 600
        while not said or said[0]["name"] != cause:
            assert time.monotonic() < deadline, said
            time.sleep(2)
            said = causes(paceline, "ranks")
        assert subject in said[0]["subjects"]
        assert text in said[0]["what"]
        traced = paceline("trace", "ranks")
        assert "trains with PyTorch, whose steps are counted and not traced" in traced.stderr
    finally:
        paceline("delete", "ranks", "--force")
