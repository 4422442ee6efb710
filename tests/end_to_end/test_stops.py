"""A job of the training library is stopped in the middle and goes on from the very step at which it was."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
JOB = """apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: clicks}}
spec:
  working_dir: {root}
  command: [python, -m, paceline.examples.clicks.train, --data, {data}]
  threads: 1
  roles:
    ps: {{replicas: 1}}
    chief: {{replicas: 1}}
    worker: {{replicas: 1}}
  training:
    batch_size: 64
    epochs: 1000
    hidden_units: [8]
    embedding_dimension: 4
    checkpoint: {{every_seconds: 3600}}  # none but that of a stop
"""
#: A trainer may finish a few steps between the moment when the chief saves and its own SIGTERM.
SLACK = 50


def test_a_stopped_job_goes_on_from_its_last_step(
    tmp_path: Path, data: Path, paceline: Callable[..., str]
) -> None:
    job_file = tmp_path / "job.yaml"
    job_file.write_text(JOB.format(root=ROOT, data=data))
    folder = tmp_path / "home" / "runs" / "clicks"

    def steps(attempt: str) -> list[int]:
        path = folder / "replicas" / attempt / "reports.jsonl"
        found = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
        return [each["step"] for each in found if each["type"] == "step"]

    def until_trained(*attempts: str) -> None:
        deadline = time.monotonic() + 600
        while not all(steps(attempt) for attempt in attempts):
            assert time.monotonic() < deadline, paceline("logs", "clicks")[-4000:]
            time.sleep(0.2)

    def exit_of(attempt: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads((folder / "replicas" / attempt / "exit.json").read_text())
        return said

    def saved() -> list[int]:
        found = (folder / "checkpoints").glob("model.ckpt-*.checksums.json")
        return sorted(int(re.sub(r"\D", "", path.name.partition(".checksums")[0])) for path in found)

    paceline("submit", str(job_file))
    until_trained("chief-0.1", "worker-0.1")
    assert saved() == []
    paceline("stop", "clicks")

    exits = [exit_of(f"{replica}.1") for replica in ("chief-0", "worker-0", "ps-0")]
    assert [each["code"] for each in exits[:2]] == [143, 143], paceline("logs", "clicks")[-4000:]
    assert exits[2]["at"] > max(each["at"] for each in exits[:2])
    (last,) = saved()
    assert last == steps("chief-0.1")[-1]
    assert steps("worker-0.1")[-1] - last <= SLACK
    log = paceline("logs", "clicks")
    assert f"stopped at step {last} of" in log

    paceline("resume", "clicks")
    until_trained("chief-0.2", "worker-0.2")
    paceline("stop", "clicks")
    log = paceline("logs", "clicks", "--role", "chief")
    assert re.search(rf"parameters start from \S+model\.ckpt-{last}\n", log)
    began = int(re.findall(r"is at step (\d+) of", log)[-1])
    assert last <= began <= last + SLACK
    assert saved()[-1] == steps("chief-0.2")[-1] > last
