"""A job of the training library gets a worker while it trains and loses two, and trains each example once."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[1] / "training" / "held_job.py"
ROWS, EPOCHS, BATCH = 4000, 4, 16
JOB = """apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: elastic}}
spec:
  command: [python, {script}, {train}, {evaluation}]
  threads: 1
  environment: {{HELD_AT: "50", HELD_UNTIL: "{steps}", RELEASE: {release}, PATIENCE_SECONDS: "3600"}}
  roles:
    ps: {{replicas: 2}}
    worker: {{replicas: 2}}
  training: {{batch_size: {batch}, epochs: {epochs}, hidden_units: [8], embedding_dimension: 4}}
"""


def data(path: Path, rows: int) -> Path:
    random = np.random.default_rng(rows)
    x, ids = random.normal(size=rows), random.integers(0, 50, rows)
    label = (random.random(rows) < 1 / (1 + np.exp(-2 * x - (ids % 5 - 2)))).astype(int)
    lines = [f"{a:.4f},{b},{b % 20},{c}" for a, b, c in zip(x, ids, label, strict=True)]
    path.write_text("\n".join(["x,id,other,label", *lines]) + "\n")
    return path


def test_workers_come_and_go_and_every_example_is_trained_once(
    tmp_path: Path, paceline: Callable[..., str]
) -> None:
    train, evaluation = data(tmp_path / "train.csv", ROWS), data(tmp_path / "evaluation.csv", 1000)
    job_file = tmp_path / "job.yaml"
    release = tmp_path / "release"
    job_file.write_text(
        JOB.format(
            script=SCRIPT, train=train, evaluation=evaluation, epochs=EPOCHS, batch=BATCH,
            steps=ROWS * EPOCHS // BATCH, release=release,
        )
    )  # fmt: skip
    reports = tmp_path / "home" / "runs" / "elastic" / "replicas"

    def steps(replica: str) -> list[dict[str, Any]]:
        path = reports / f"{replica}.1" / "reports.jsonl"
        found = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
        return [each for each in found if each["type"] == "step"]

    def until(holds: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + 600
        while not holds():
            assert time.monotonic() < deadline, f"{what}: {paceline('logs', 'elastic')[-4000:]}"
            time.sleep(0.2)

    paceline("submit", str(job_file))
    until(lambda: steps("worker-1"), "two workers train")
    paceline("scale", "elastic", "--workers", "3")
    until(lambda: steps("worker-2"), "the third worker trains")
    paceline("scale", "elastic", "--workers", "1")
    until(lambda: (reports / "worker-2.1" / "exit.json").exists(), "the third worker leaves")
    left = steps("worker-0")[-1]["step"]
    # Nothing is waited for that a held trainer would have to do: it may have come as far as it goes.
    release.touch()
    paceline("wait", "elastic", "--for", "succeeded")
    assert steps("worker-0")[-1]["step"] > left, "the first worker goes on"
    assert json.loads(paceline("get", "elastic", "-o", "json"))["phase"] == "succeeded"
    log = paceline("logs", "elastic", "--role", "worker", "--index", "0")
    wanted = f"{ROWS * EPOCHS:,}"
    told = re.findall(r"^.*(?:INFO (?!epoch)| WARNING ).*$", paceline("logs", "elastic"), re.MULTILINE)
    assert f"trained {wanted} of {wanted} examples, 0 of them perhaps twice" in log, "\n".join(
        (*told, paceline("describe", "elastic"))
    )
    seen = sum(each["examples"] for index in range(3) for each in steps(f"worker-{index}"))
    assert seen == ROWS * EPOCHS
    assert re.search(r"AUC 0\.[789]", log)
