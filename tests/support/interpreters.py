"""Old and new Pythons of this machine, as pyenv has them."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

VERSIONS = ("2.7", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13")


def of(version: str) -> Path | None:
    """Return the newest Python of a version such as 3.6; None: there is none."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = sorted((root / "versions").glob(f"{version}.*/bin/python"))
    return found[-1] if found else None


def found() -> list[Path]:
    """Return those that there are."""
    return [path for path in map(of, VERSIONS) if path is not None]


def run(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one with arguments, and return what it says."""
    return subprocess.run([python, *arguments], capture_output=True, text=True, timeout=240, check=False)


@contextlib.contextmanager
def printing(code: str, python: Path = Path(sys.executable)) -> Iterator[str]:
    """Run a program as long as this is open, and give the first line that it prints."""
    with subprocess.Popen([python, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline()
        finally:
            process.kill()


def with_tensorflow(version: str) -> Path | None:
    """Return the Python of an environment that `tests/instrumentation/fetch-tensorflows` has made."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = cache / "paceline-tensorflows" / version / "bin" / "python"
    return path if path.exists() else None


@functools.cache
def with_torch() -> Path | None:
    """Return a Python that can import PyTorch; None: there is none, as it is large, and no dependency.

    It has to find what ``PYTHONPATH`` names, too, where the instrumentation is.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    fetched = Path(os.environ.get("PACELINE_TORCH") or cache / "paceline-torch") / "python"
    named = os.environ.get("PACELINE_TORCH_PYTHON", str(fetched))
    for path in (Path(named), fetched, Path(sys.executable)):
        if path.exists():
            code = "import sys, torch; assert '/paceline-looks-here' in sys.path"
            environment = {**os.environ, "PYTHONPATH": "/paceline-looks-here"}
            done = subprocess.run([path, "-c", code], env=environment, capture_output=True, check=False)
            if done.returncode == 0:
                return path
    return None


def with_torch_or_skip() -> Path:
    """Return the same; without one a test is skipped."""
    path = with_torch()
    if path is None:
        pytest.skip(
            "no PyTorch: run tests/end_to_end/fetch-torch, or let PACELINE_TORCH_PYTHON name a Python with it"
        )
    return path


def with_tensorflow_or_skip(version: str | None) -> Path:
    """Return the same, or this Python for no version; a test whose TensorFlow was not fetched is skipped."""
    python = Path(sys.executable) if version is None else with_tensorflow(version)
    if python is None:
        pytest.skip(f"TensorFlow {version} is not here: tests/instrumentation/fetch-tensorflows has it")
    return python
