"""Scripts that nobody wrote for Paceline run unchanged from a job file, by the command that a user types."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import leftovers

from paceline.engines.local import folders
from paceline.specs import load_job

pytestmark = pytest.mark.slow
SCRIPTS = Path(__file__).parents[1] / "scripts"
HEADER = "apiVersion: paceline.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: user-script}\nspec:\n"
TF1 = f"""{HEADER}
  command: [python, {SCRIPTS}/tf1_style.py, "--ps_hosts={{ps_hosts}}", "--worker_hosts={{worker_hosts}}",
            "--job_name={{role}}", "--task_index={{index}}", "--checkpoint_dir={{checkpoint_dir}}",
            "--steps=200"]
  roles:
    ps: {{replicas: 2, cpu: 1, memory: 2Gi}}
    worker: {{replicas: 2, cpu: 1, memory: 2Gi}}
"""
TF2 = f"""{HEADER}
  command: [python, {SCRIPTS}/tf2_style.py]
  roles:
    chief: {{replicas: 1, memory: 2Gi}}
    ps: {{replicas: 2, memory: 2Gi}}
    worker: {{replicas: 2, memory: 2Gi}}
"""
HOSTS = "  hosts: [{name: a, bandwidth: 1Gbit}, {name: b, bandwidth: 1Gbit}]\n"


def paceline(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PACELINE_HOME": str(home)}
    program = Path(sys.executable).parent / "paceline"
    return subprocess.run(
        [program, *arguments], env=environment, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.parametrize(
    ("text", "last_words"),
    [(TF1 + HOSTS, "worker 1 done, loss"), (TF2, "loss")],
    ids=["tf1-hosts", "tf2"],
)
def test_a_users_script_runs_unchanged(tmp_path: Path, text: str, last_words: str) -> None:
    job_file = tmp_path / "job.yaml"
    job_file.write_text(text)
    done = paceline(tmp_path / "home", "run", str(job_file))
    assert done.returncode == 0, done.stderr
    found = json.loads(paceline(tmp_path / "home", "get", "user-script", "-o", "json").stdout)
    assert found["phase"] == "succeeded"
    assert last_words in paceline(tmp_path / "home", "logs", "user-script").stdout
    folder = folders.RunFolder(tmp_path / "home" / "runs" / "user-script")
    assert leftovers.find(load_job(job_file).spec, folder) == []
