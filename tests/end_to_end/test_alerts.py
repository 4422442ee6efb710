"""A job that is run is told of what slows it down while it trains, by rules on what was measured of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from paceline.engines.local import machines

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
JOB = """apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: weak}}
spec:
  working_dir: {root}
  command: [python, -m, paceline.examples.clicks.train, --data, {data}]
  termination_grace: 2s
  roles:
    ps: {{replicas: 1, cpu: 60m, threads: 1}}
    worker: {{replicas: 2, threads: 1}}
  training: {{batch_size: 64, epochs: 100000, hidden_units: [8], embedding_dimension: 16}}
"""
TOLD = re.compile(r"^\d\d:\d\d:\d\d PS101 warning: Every PS is at its CPU limit.*\(paceline why weak\)$")


def test_a_parameter_server_that_is_too_weak_is_told_of_while_the_job_runs(
    tmp_path: Path, data: Path, paceline: Callable[..., str]
) -> None:
    if lacks := machines.read().lacks_cgroups:
        pytest.skip(f"CPU is limited as root: {lacks}")
    (tmp_path / "job.yaml").write_text(JOB.format(root=ROOT, data=data))
    process = subprocess.Popen(
        [Path(sys.executable).parent / "paceline", "run", str(tmp_path / "job.yaml")],
        env={**os.environ, "PACELINE_HOME": str(tmp_path / "home"), "COLUMNS": "500"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    # Reading ends with the job: it is stopped once the finding was told, or when that takes too long.
    late = threading.Timer(1500, process.kill)
    late.start()
    assert process.stdout is not None
    lines: list[str] = []
    with process:
        for line in process.stdout:
            lines.append(line.rstrip())
            if TOLD.match(lines[-1]):
                break
        paceline("stop", "weak")
        late.cancel()
        process.stdout.read()
    assert TOLD.match(lines[-1]), "\n".join(lines)
