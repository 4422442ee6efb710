"""Runs scripts with the instrumentation in front of them, as the agent does, and without it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import paceline

FOLDER = Path(paceline.__file__).parent / "instrumentation"
#: What differs between two runs of the same script: times, processes, addresses.
_CHANGES = re.compile(r"0x[0-9a-f]+|\d+")


class Runner:
    """Runs Pythons in a folder that stands for a replica's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reports_file = folder / "reports.jsonl"

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a replica's command."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "PYTHONPATH": str(FOLDER),
            "PACELINE_REPORT_FILE": str(self.reports_file),
            "PACELINE_RUN_DIR": str(self.folder),
            "PACELINE_ROLE": "worker",
            "PACELINE_INDEX": "0",
            "PACELINE_ATTEMPT": "1",
            **more,
        }

    def run(
        self, *arguments: str, python: str = sys.executable, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = {**(environment or self.environment())}
        if python != sys.executable:  # An old Python writes what it compiles beside the sources.
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        return subprocess.run(
            [python, *arguments], cwd=self.folder, env=environment, text=True,
            capture_output=True, timeout=600, check=False,
        )  # fmt: skip

    @staticmethod
    def lines(text: str) -> list[str]:
        """What a script has written, without what differs anyway; TensorFlow's threads write in any order."""
        return sorted(" ".join(_CHANGES.sub("N", line).split()) for line in text.splitlines())

    def code(
        self,
        text: str,
        *options: str,
        python: str = sys.executable,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a few lines of Python."""
        return self.run(*options, "-c", text, python=python, environment=environment)

    def reports(self, kind: str) -> list[dict[str, Any]]:
        """The lines of a kind that were reported."""
        text = self.reports_file.read_text() if self.reports_file.exists() else ""
        return [line for line in map(json.loads, text.splitlines()) if line["type"] == kind]


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)
