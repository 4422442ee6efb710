"""Run the fast tests ten times and all of them once, three runs side by side: none may fail.

The commands are those of ``make test-fast`` and ``make test``, without tests marked ``speed``: they judge
how fast something is. The runs are each other's load: each has several tests at once, and busy processes take
the place of runs that are done. Each run is noted in ``.soak`` when it is done: a soak that is cut off goes
on where it stopped, as long as the commit is the same. What pytest says is there as well.

Exit codes: 0 no test failed, 1 some did.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".soak"
FAST_RUNS = 10
RUNS_AT_ONCE = 3
#: Stand in for a run that is done.
BUSY_PROCESSES = 4
#: What pytest exits with when all passed, some failed, or a stage has no test.
_JUDGED = (0, 1, 5)


@dataclasses.dataclass(frozen=True)
class Run:
    """One command of pytest, once."""

    name: str
    command: tuple[str, ...]

    @property
    def report(self) -> Path:
        """Return the file that pytest writes its outcomes to."""
        return FOLDER / f"{self.name}.xml"

    @property
    def output(self) -> Path:
        """Return the file of what pytest says."""
        return FOLDER / f"{self.name}.log"


def commands(target: str) -> list[tuple[str, ...]]:
    """Return the commands of pytest by which make makes a target."""
    shown = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    lines = [tuple(shlex.split(line)) for line in shown.stdout.splitlines() if "-m pytest" in line]
    return [without_speed(line) for line in lines]


def without_speed(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command of pytest without the tests that judge speed."""
    place = command.index("-m", command.index("pytest")) + 1
    return (*command[:place], f"({command[place]}) and not speed", *command[place + 1 :])


def runs() -> list[Run]:
    """Return all runs, in order."""
    (fast,) = commands("test-fast")
    return [
        *(Run(f"whole-{number}", command) for number, command in enumerate(reversed(commands("test")), 1)),
        *(Run(f"fast-{number}", fast) for number in range(1, FAST_RUNS + 1)),
    ]


@contextlib.contextmanager
def loaded(processes: int) -> Iterator[None]:
    """Keep so many processes busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def failures(report: Path) -> list[str]:
    """Return the tests that failed, or could not be run, in a run."""
    return [
        f"{case.attrib['classname']}::{case.attrib['name']}"
        for case in ElementTree.parse(report).iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    ]


def done(run: Run) -> list[str]:
    """Make a run and return the tests that failed.

    Raises:
        SystemExit: pytest could not judge: it was interrupted, or met an error of its own.
    """
    run.report.unlink(missing_ok=True)
    command = [*run.command, f"--junitxml={run.report}"]
    with run.output.open("w") as output:
        code = subprocess.run(command, cwd=ROOT, check=False, stdout=output, stderr=output).returncode
    if code not in _JUDGED or not run.report.exists():
        raise SystemExit(f"soak: pytest ended with {code}, see {run.output}; make soak goes on from there")
    return failures(run.report)


def commit() -> str:
    """Return the commit that is checked out, marked if files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def finished(left: list[Run]) -> Iterator[tuple[Run, list[str]]]:
    """Make runs side by side; yield each with the tests that failed in it as it ends."""
    with concurrent.futures.ThreadPoolExecutor(RUNS_AT_ONCE) as pool, contextlib.ExitStack() as stack:
        stack.callback(pool.shutdown, cancel_futures=True)
        stack.enter_context(loaded(BUSY_PROCESSES * max(0, RUNS_AT_ONCE - len(left))))
        started = {pool.submit(done, run): run for run in left}
        for ended in concurrent.futures.as_completed(started):
            left = [run for run in left if run is not started[ended]]
            if len(left) < RUNS_AT_ONCE:
                stack.enter_context(loaded(BUSY_PROCESSES))
            yield started[ended], ended.result()


def main() -> int:
    """Make the runs that are not done yet, and say which tests failed how often."""
    FOLDER.mkdir(exist_ok=True)
    state = FOLDER / "state.json"
    noted = json.loads(state.read_text()) if state.exists() else {}
    failed: dict[str, list[str]] = noted["failed"] if noted.get("commit") == commit() else {}
    left = [run for run in runs() if run.name not in failed]
    print(f"soak: {len(left)} runs, {RUNS_AT_ONCE} at once; what they say is in {FOLDER}", flush=True)
    for run, tests in finished(left):
        failed[run.name] = tests
        state.write_text(json.dumps({"commit": commit(), "failed": failed}, indent=1))
        load = os.getloadavg()[1]
        print(f"soak: {run.name}: {len(tests)} failures; load {load:.1f} in 5 minutes", flush=True)
    counts = collections.Counter(test for tests in failed.values() for test in tests)
    for test, count in counts.most_common():
        print(f"{count:3} of {len(failed)} runs: {test}")
    print(f"soak: {len(failed)} runs, {sum(counts.values())} failures of {len(counts)} tests")
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main())
