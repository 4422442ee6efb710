"""``paceline suggest``: what past runs of a model suggest."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from support.filled_homes import fill, spec_of

from paceline import specs
from paceline.model.roles import Role
from paceline.services.local.state_dirs import Home

Paceline = Callable[..., Result]


@pytest.fixture
def job(home: Home, tmp_path: Path) -> str:
    """A job file of 2 PS; a run of it with 4, and one of another model."""
    spec = spec_of("clicks")
    file = tmp_path / "job.yaml"
    file.write_text(specs.dump_job(spec))
    roles = tuple(
        dataclasses.replace(each, replicas=4) if each.role is Role.PS else each for each in spec.roles
    )
    large = dataclasses.replace(spec, name="large", roles=roles)
    fill(home, "large", spec=large, loads=(0.5, 0.5, 0.5, 0.5), steps=8)
    other = dataclasses.replace(spec, name="other", command=("python", "other.py"))
    fill(home, "other", spec=other, loads=(0.5, 0.5), steps=8)
    return str(file)


def test_the_settings_of_the_best_run_are_shown_as_a_diff(paceline: Paceline, job: str) -> None:
    done = paceline("suggest", job)
    assert "clicks: 1 run of this model suggest" in done.stdout
    assert "large: " in done.stdout
    assert "AUC 0.7500" in done.stdout
    assert "replicas: 4" in done.stdout
    assert "other" not in done.stdout.replace("other settings", "")
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_suggestion_for_programs(paceline: Paceline, job: str) -> None:
    found = json.loads(paceline("suggest", job, "-o", "json").stdout)
    assert found["kind"] == "Suggestion"
    assert found["best"]["name"] == "large"
    assert found["changes"] == [{"path": ["spec", "roles", "ps", "replicas"], "value": 4}]


def test_what_is_beyond_the_limits_is_not_suggested(paceline: Paceline, job: str) -> None:
    assert (
        "none of 1 runs of this model is within the limits" in paceline("suggest", job, "--cores", "2").stdout
    )


def test_of_a_model_that_never_ran_nothing_is_known(paceline: Paceline, home: Home, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(specs.dump_job(spec_of("new")))
    assert "no run of this model was measured" in paceline("suggest", str(file)).stdout
