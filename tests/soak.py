"""Run the fast tests ten times and all of them once, two runs side by side: none may fail.

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
import os
import subprocess
import sys
from collections.abc import Iterator

from support.pytest_runs import ROOT, Notes, Run, commands

FOLDER = ROOT / ".soak"
FAST_RUNS = 10
#: With two, the load is 8 to 16 on two cores; with three, most of the time goes into taking turns.
RUNS_AT_ONCE = 2
#: Stand in for a run that is done.
BUSY_PROCESSES = 4


def without_speed(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command of pytest without the tests that judge speed."""
    place = command.index("-m", command.index("pytest")) + 1
    return (*command[:place], f"({command[place]}) and not speed", *command[place + 1 :])


def runs() -> list[Run]:
    """Return all runs, in order."""
    (fast,) = map(without_speed, commands("test-fast"))
    whole = map(without_speed, reversed(commands("test")))
    return [
        *(Run(f"whole-{number}", command, FOLDER) for number, command in enumerate(whole, 1)),
        *(Run(f"fast-{number}", fast, FOLDER) for number in range(1, FAST_RUNS + 1)),
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


def finished(left: list[Run]) -> Iterator[tuple[Run, list[str]]]:
    """Make runs side by side; yield each with the tests that failed in it as it ends."""
    with concurrent.futures.ThreadPoolExecutor(RUNS_AT_ONCE) as pool, contextlib.ExitStack() as stack:
        stack.callback(pool.shutdown, cancel_futures=True)
        stack.enter_context(loaded(BUSY_PROCESSES * max(0, RUNS_AT_ONCE - len(left))))
        started = {pool.submit(run.failures): run for run in left}
        for ended in concurrent.futures.as_completed(started):
            left = [run for run in left if run is not started[ended]]
            if len(left) < RUNS_AT_ONCE:
                stack.enter_context(loaded(BUSY_PROCESSES))
            yield started[ended], ended.result()


def main() -> int:
    """Make the runs that are not done yet, and say which tests failed how often."""
    notes = Notes(FOLDER)
    left = [run for run in runs() if run.name not in notes.failed]
    print(f"soak: {len(left)} runs, {RUNS_AT_ONCE} at once; what they say is in {FOLDER}", flush=True)
    for run, failed in finished(left):
        notes.add(run, failed)
        load = os.getloadavg()[1]
        print(f"soak: {run.name}: {len(failed)} failures; load {load:.1f} in 5 minutes", flush=True)
    counts = collections.Counter(test for tests in notes.failed.values() for test in tests)
    for test, count in counts.most_common():
        print(f"{count:3} of {len(notes.failed)} runs: {test}")
    print(f"soak: {len(notes.failed)} runs, {len(counts)} tests failed, {sum(counts.values())} times in all")
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main())
