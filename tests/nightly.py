"""Run all tests with ``--nightly``, folder by folder, and say which lines of ``src/`` they reach.

The commands are those of ``make test``; then those of ``make e2e-versions``, ``make e2e-queues`` and ``make
e2e-conformance``, as they are, if there can be a cluster. Each run is noted in ``.nightly`` when it has
passed. So a night that is cut off, or in which a test failed, goes on where it stopped, as long as the commit
is the same. What pytest says is there as well.

Exit codes: 0 no test failed, 1 some did.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.pytest_runs import ROOT, Notes, Run, commands

FOLDER = ROOT / ".nightly"
COVERAGE = Path(sys.executable).with_name("coverage")


def runs() -> list[Run]:
    """Return all runs, in order: of each stage the folders with tests."""
    folders = sorted(
        {path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("*/test_*.py")}
    )
    return [
        Run(f"{stage}-{folder}", (*_covered(command), f"tests/{folder}"), FOLDER)
        for stage, command in enumerate(commands("test"), 1)
        for folder in folders
    ]


def cluster_runs() -> list[Run]:
    """Return the runs on each supported Kubernetes, and with queues; none if there can be no cluster."""
    with_cluster = ROOT / "tests" / "kubernetes" / "with-cluster"
    if subprocess.run([with_cluster], check=False).returncode:
        print("nightly: SKIPPED: all tests on clusters, see above why", flush=True)
        return []
    return [
        Run(f"{target}-{number}", ("env", *command), FOLDER)
        for target in ("e2e-versions", "e2e-queues", "e2e-conformance")
        for number, command in enumerate(commands(target), 1)
    ]


def _covered(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command of pytest with all examples, which notes what it reaches."""
    after = command[command.index("pytest") + 1 :]
    return (str(COVERAGE), "run", "-m", "pytest", "--nightly", *after)


def _coverage(*arguments: str) -> None:
    subprocess.run([COVERAGE, *arguments], cwd=ROOT, check=True)


def main() -> int:
    """Make the runs that have not passed yet; then combine what they reached, and show it."""
    notes = Notes(FOLDER)
    if notes.is_new:
        _coverage("erase")
    left = [run for run in (*runs(), *cluster_runs()) if notes.failed.get(run.name) != []]
    print(f"nightly: {len(left)} runs; what they say is in {FOLDER}", flush=True)
    for run in left:
        failed = run.failures()
        notes.add(run, failed)
        print(f"nightly: {run.name}: {len(failed)} failures", flush=True)
    failures = [test for tests in notes.failed.values() for test in tests]
    for test in failures:
        print(f"failed: {test}")
    print(f"nightly: {len(notes.failed)} runs, {len(failures)} failures", flush=True)
    _coverage("combine", "--keep", "--quiet")
    _coverage("report")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
