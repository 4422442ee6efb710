"""The workflow of the hosted service: it runs what a person can run, on what is supported."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from paceline.model.jobs.job_specs import SecurityProfile
from paceline.rendering.surroundings import AGENT_IMAGE
from paceline.specs import load_job

ROOT = Path(__file__).parents[2]
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yaml").read_text())
JOBS: dict[str, Any] = WORKFLOW["jobs"]


def steps(key: str) -> list[str]:
    return [step[key] for job in JOBS.values() for step in job["steps"] if key in step]


def test_it_runs_targets_that_there_are() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = {target for line in steps("run") for target in re.findall(r"\bmake ([a-z0-9-]+)", line)}
    assert used == {"check", "test-fast", "test", "e2e"}
    assert used <= targets


def test_all_pythons_that_tensorflow_has_wheels_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    supported = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert JOBS["fast"]["strategy"]["matrix"]["python"] == [each for each in supported if each != "3.14"]


def test_actions_and_images_are_pinned() -> None:
    assert all(re.search(r"@v\d+(\.\d+\.\d+)?$", each) for each in steps("uses"))
    clusters = JOBS["e2e"]["strategy"]["matrix"]["kubernetes"]
    assert len(clusters) == 3
    for each in clusters:
        assert re.fullmatch(
            rf"kindest/node:v{re.escape(each['minor'])}\.\d+@sha256:[0-9a-f]{{64}}", each["image"]
        )


def test_what_is_built_is_what_is_installed_and_brought() -> None:
    assert JOBS["install"]["env"]["IMAGE"] == AGENT_IMAGE


def test_the_job_that_is_run_at_last_is_restricted() -> None:
    file = "tests/kubernetes/restricted-job.yaml"
    assert any(file in line for line in steps("run"))
    assert load_job(ROOT / file).spec.security.profile is SecurityProfile.RESTRICTED
