"""PyTorch over three replicas: they find each other by the variables of their framework, and all-reduce."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import interpreters

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python() -> str:
    """An interpreter that can import PyTorch: it is no dependency of Paceline's, and large."""
    return str(interpreters.with_torch_or_skip())


@pytest.mark.parametrize("roles", ["worker: {replicas: 3}", "chief: {}, worker: {replicas: 2}"])
def test_all_reduce_over_three_replicas(tmp_path: Path, python: str, roles: str) -> None:
    script = ROOT / "tests" / "scripts" / "torch_all_reduce.py"
    job = tmp_path / "job.yaml"
    job.write_text(
        f"""\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: all-reduce}}
spec:
  framework: pytorch
  command: ["{python}", "{script}"]
  roles: {{{roles}}}
  success: all-workers
"""
    )
    environment = {**os.environ, "PACELINE_HOME": str(tmp_path / "home")}

    def paceline(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-c", "from paceline.surfaces.cli.main import main; main()", *arguments]
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=600, check=False)

    done = paceline("run", str(job))
    told = paceline("logs", "all-reduce").stdout
    assert done.returncode == 0, (done.stderr, told)
    assert sorted(line[line.index("rank") :][:16] for line in told.splitlines() if "done" in line) == [
        f"rank {rank} of 3 done" for rank in range(3)
    ]
