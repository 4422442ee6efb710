"""Old and new Pythons of this machine, as pyenv has them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

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
    return subprocess.run([python, *arguments], capture_output=True, text=True, timeout=120, check=False)
