"""``paceline simulate``: a job that does not run, measured all the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from paceline.stores import recordings

RECORDINGS = Path(__file__).parents[2] / "benchmarks" / "diagnosis" / "recordings"
HEALTHY = RECORDINGS / "healthy.live.deepfm-large-plain-4.parquet"
#: The same with 0.074 cores for each parameter server.
SMALL = RECORDINGS / "ps-cpu-bound.gross.deepfm-large-plain-4.parquet"

Paceline = Callable[..., Result]


@pytest.fixture
def simulate(paceline: Paceline, tmp_path: Path) -> Callable[..., Path]:
    """Simulates the job of a recording, like the healthy one."""

    def simulated(source: Path, *options: str) -> Path:
        job, target = tmp_path / "job.yaml", tmp_path / "simulated.parquet"
        job.write_text(recordings.read(source).run.source)
        done = paceline("simulate", str(job), "--like", str(HEALTHY), "-o", str(target), *options)
        assert done.exit_code == 0, done.stderr
        assert f"paceline why {target}" in done.stderr
        return target

    return simulated


def _examples_per_second(paceline: Paceline, path: Path) -> float:
    found = json.loads(paceline("top", str(path), "-o", "json").stdout)
    return float(found["examples_per_second"])


def test_why_finds_in_a_simulation_what_it_finds_in_the_real_run(
    paceline: Paceline, simulate: Callable[..., Path]
) -> None:
    target = simulate(SMALL, "--seconds", "60")
    for path in (target, SMALL):
        first, *_ = json.loads(paceline("why", str(path), "-o", "json").stdout)["causes"]
        assert first["name"] == "ps-cpu-bound"
    assert _examples_per_second(paceline, target) == pytest.approx(
        _examples_per_second(paceline, SMALL), rel=0.2
    )
    assert recordings.read(target).run.notes[0].startswith("simulated")


def test_the_job_that_was_measured_is_simulated_as_fast_as_it_was(
    paceline: Paceline, simulate: Callable[..., Path]
) -> None:
    target = simulate(HEALTHY, "--seconds", "30")
    assert _examples_per_second(paceline, target) == pytest.approx(
        _examples_per_second(paceline, HEALTHY), rel=0.15
    )
    assert not [
        each
        for each in json.loads(paceline("why", str(target), "-o", "json").stdout)["causes"]
        if each["severity"] != "info"
    ]


def test_the_seed_decides(simulate: Callable[..., Path]) -> None:
    steps = [
        [each.steps for each in recordings.read(simulate(SMALL, "--seconds", "5", "--seed", seed)).steps]
        for seed in ("1", "1", "2")
    ]
    assert steps[0] == steps[1] != steps[2]


def test_another_batch_size_is_not_foretold(paceline: Paceline, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(recordings.read(HEALTHY).run.source.replace("batch_size: 512", "batch_size: 64"))
    result = paceline("simulate", str(job), "--like", str(HEALTHY), "-o", str(tmp_path / "out.parquet"))
    assert result.exit_code == 2
    assert "training.batch_size" in result.stderr
