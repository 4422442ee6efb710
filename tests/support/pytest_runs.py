"""Runs of pytest that take hours together: each is noted when it is done, and they go on from there."""

from __future__ import annotations

import dataclasses
import json
import shlex
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
#: What pytest exits with when all passed, some failed, it met an error of its own, or there was no test. Its
#: report has an error of its own as one test that failed.
_JUDGED = (0, 1, 3, 5)


@dataclasses.dataclass(frozen=True)
class Run:
    """One command of pytest, once; its report and what it says are in a folder."""

    name: str
    command: tuple[str, ...]
    folder: Path

    def failures(self) -> list[str]:
        """Make the run and return the tests that failed in it, or could not be run.

        Raises:
            SystemExit: pytest could not judge: it was interrupted.
        """
        report, log = self.folder / f"{self.name}.xml", self.folder / f"{self.name}.log"
        report.unlink(missing_ok=True)
        command = [*self.command, f"--junitxml={report}"]
        with log.open("w") as output:
            code = subprocess.run(command, cwd=ROOT, check=False, stdout=output, stderr=output).returncode
        if code not in _JUDGED or not report.exists():
            raise SystemExit(f"pytest ended with {code}, see {log}; the same command goes on from there")
        return [
            f"{case.attrib['classname']}::{case.attrib['name']}"
            for case in ElementTree.parse(report).iter("testcase")
            if case.find("failure") is not None or case.find("error") is not None
        ]


class Notes:
    """The runs of a commit that are done, and the tests that failed in each.

    Args:
        folder: where they are kept.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._path = folder / "state.json"
        noted = json.loads(self._path.read_text()) if self._path.exists() else {}
        self.is_new = noted.get("commit") != _commit()
        self.failed: dict[str, list[str]] = {} if self.is_new else noted["failed"]

    def add(self, run: Run, failed: list[str]) -> None:
        """Note a run that is done."""
        self.failed[run.name] = failed
        self._path.write_text(json.dumps({"commit": _commit(), "failed": self.failed}, indent=1))


def commands(target: str) -> list[tuple[str, ...]]:
    """Return the commands of pytest by which make makes a target; assignments of variables come first."""
    shown = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    lines = shown.stdout.replace("\\\n", " ").splitlines()
    return [tuple(shlex.split(line)) for line in lines if "-m pytest" in line]


def _commit() -> str:
    """Return the commit that is checked out, marked if files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
