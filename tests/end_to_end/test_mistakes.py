"""Mistakes that public scripts have, in real jobs: `paceline why` names each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support import interpreters, ports
from support.nights import but
from support.styles import SCRIPTS

pytestmark = pytest.mark.slow
JOB = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: mistaken}
spec:
  command: [PYTHON, SCRIPT, "--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}",
            "--job_name={role}", "--task_index={index}", "--mistake=MISTAKE"]
  roles:
    ps: {replicas: 1, memory: 2Gi}
    worker: {replicas: 2, memory: 2Gi}
"""
CHIEF = "    chief: {replicas: 1, memory: 2Gi}\n"
#: What is written into a script, and the cause that has to be named.
MISTAKES = {
    "forgotten setter": "no-variables-on-ps",
    "no join": "ps-ended",
    "no checkpoint": "trained-anew",
    "written ports": "other-addresses",
    "a master": "nothing-trained",
}
DEADLINE_SECONDS = 600.0


def paceline(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PACELINE_HOME": str(home)}
    program = Path(sys.executable).parent / "paceline"
    return subprocess.run(
        [program, *arguments], env=environment, capture_output=True, text=True, timeout=600, check=False
    )


def everything(causes: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield all causes, those that follow from others among them."""
    for cause in causes:
        yield cause
        yield from everything(cause["effects"])


@pytest.mark.parametrize("mistake", but(MISTAKES, often=("forgotten setter",)))
def test_a_mistake_is_named(tmp_path: Path, mistake: str) -> None:
    _is_named(tmp_path, mistake, sys.executable)


@pytest.mark.nightly
@pytest.mark.parametrize("version", ["1.4.1", "1.15.5"])
@pytest.mark.parametrize("mistake", ["forgotten setter", "written ports"])
def test_a_mistake_is_named_whatever_the_version(tmp_path: Path, mistake: str, version: str) -> None:
    _is_named(tmp_path, mistake, str(interpreters.with_tensorflow_or_skip(version)))


def _is_named(tmp_path: Path, mistake: str, python: str) -> None:
    home, job_file = tmp_path / "home", tmp_path / "job.yaml"
    text = JOB + (CHIEF if mistake == "a master" else "")
    written = " ".join(map(str, ports.free_ports(3))) if mistake == "written ports" else ""
    text = text.replace("MISTAKE", f"{mistake} {written}".rstrip())
    text = text.replace("PYTHON", python).replace("SCRIPT", str(SCRIPTS / "tf1_mistaken.py"))
    job_file.write_text(text)
    submitted = paceline(home, "submit", str(job_file))
    assert submitted.returncode == 0, submitted.stderr
    found: dict[str, Any] = {}
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while MISTAKES[mistake] not in [cause["name"] for cause in everything(found.get("causes", []))]:
            assert time.monotonic() < deadline, f"it is not named: {found}"
            time.sleep(5)
            found = json.loads(paceline(home, "why", "mistaken", "-o", "json").stdout)
        # Replicas on one machine find each other at wrong addresses, too: then they train, and that is said.
        trains = any("and it trains" in cause["what"] for cause in everything(found["causes"]))
        assert trains or not found["summary"].startswith("nothing is wrong")
    finally:
        paceline(home, "delete", "mistaken", "--force")
