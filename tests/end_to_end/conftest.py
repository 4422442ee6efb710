"""What tests here share: the command line, in processes of its own, with a home of the test's, and data."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from paceline.examples.clicks import generate


@pytest.fixture
def paceline(tmp_path: Path) -> Callable[..., str]:
    """Runs a command line that is to succeed, and returns what it says."""
    environment = {**os.environ, "PACELINE_HOME": str(tmp_path / "home")}
    program = Path(sys.executable).parent / "paceline"

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [program, *arguments], env=environment, capture_output=True, text=True, timeout=800, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Clicks for jobs that never need all of them."""
    parameters = generate.Parameters(
        train_rows=20_000, evaluation_rows=500, train_files=2, tables=(500, 40, 30, 20, 10, 8, 5, 4), seed=3
    )
    return generate.generate(tmp_path / "data", parameters).folder
