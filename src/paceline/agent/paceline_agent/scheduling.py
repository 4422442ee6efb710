"""What the kernel's scheduler did with the command's threads."""

import contextlib
import os
import re
import time
from typing import Dict, List, NamedTuple, Optional, Tuple

from .kernel_files import KeptFiles, parse_integer
from .processes import ProcessStat

SWITCHES_BUDGET = 0.0015  # cores that reading context switches may cost on average


class Scheduling(NamedTuple):
    """What the scheduler did with threads: context switches, and seconds they waited for a core."""

    voluntary: int
    involuntary: int
    run_delay_seconds: Optional[float]

    def since(self, before: "Scheduling") -> "Scheduling":
        """Return the rise since an earlier reading; the whole count if that reading was of another thread."""
        another = self.voluntary < before.voluntary or self.involuntary < before.involuntary
        old = _UNSCHEDULED if another else before
        delay = None
        if self.run_delay_seconds is not None:
            delay = max(0.0, self.run_delay_seconds - (old.run_delay_seconds or 0.0))
        return Scheduling(self.voluntary - old.voluntary, self.involuntary - old.involuntary, delay)


_UNSCHEDULED = Scheduling(0, 0, 0.0)


def total_scheduling(rises: List[Scheduling]) -> Scheduling:
    """Add up the rises of all threads; the wait is unknown only if it is unknown for every thread."""
    delays = [rise.run_delay_seconds for rise in rises]
    known = [delay for delay in delays if delay is not None]
    return Scheduling(
        sum(rise.voluntary for rise in rises),
        sum(rise.involuntary for rise in rises),
        round(sum(known), 6) if known else None,
    )


def parse_switches(text: str) -> Optional[Tuple[int, int]]:
    """Parse voluntary and involuntary switches from /proc/PID/task/TID/status (proc.rst, table 1-2)."""
    match = re.search(
        r"\nvoluntary_ctxt_switches:\t([0-9]{1,20})\nnonvoluntary_ctxt_switches:\t([0-9]{1,20})", text
    )
    return (int(match.group(1)), int(match.group(2))) if match else None


def parse_run_delay(text: str) -> Optional[float]:
    """Parse the seconds a thread waited for a core from /proc/PID/task/TID/schedstat (sched-stats.rst)."""
    words = [parse_integer(word) for word in text.split()]
    return words[1] * 1e-9 if len(words) >= 3 and words[1] is not None else None


class SchedulingCounter:
    """Counts what the scheduler did with all threads between two readings.

    Each thread means reading two files. If that costs more than the budget, only one interval in several is
    measured, from end to end, and the others are None: a count is never extrapolated to unmeasured time. A
    thread counts from when it is first seen, which may be after it began.
    """

    def __init__(self, files: KeptFiles) -> None:
        self._files = files
        self._paths: Dict[int, List[str]] = {}
        self._totals: Optional[Dict[str, Scheduling]] = None
        self._resume_at = 0.0

    def _list(self, pid: int, count: int) -> List[str]:
        known = self._paths.get(pid, [])
        if len(known) != count:
            paths: List[str] = []
            with contextlib.suppress(OSError):
                if count:
                    paths = [f"/proc/{pid}/task/{task}" for task in os.listdir(f"/proc/{pid}/task")]
            for path in set(known) - set(paths):
                self._forget(path)
            self._paths[pid] = paths
        return list(self._paths[pid])

    def _forget(self, path: str) -> None:
        for name in ("status", "schedstat"):
            self._files.forget(f"{path}/{name}")

    def _read(self, path: str) -> Optional[Scheduling]:
        switches = parse_switches(self._files.read(f"{path}/status") or "")
        if switches is None:
            return None
        return Scheduling(*switches, parse_run_delay(self._files.read(f"{path}/schedstat") or ""))

    def count(self, processes: Dict[int, ProcessStat], now: float, interval: float) -> Optional[Scheduling]:
        """Return what the scheduler did since the last call, or None if that was not measured."""
        if now < self._resume_at:
            return None
        started = time.process_time()
        for pid in set(self._paths) - set(processes):
            self._list(pid, 0)
            del self._paths[pid]
        before, totals, rises = self._totals, {}, []
        for pid, process in processes.items():
            for path in self._list(pid, process.threads):
                found = self._read(path)
                if found is None:  # the thread has ended; its counts since the last reading are lost
                    self._paths[pid].remove(path)
                    continue
                totals[path] = found
                if before is not None and path in before:
                    rises.append(found.since(before[path]))
        cost = time.process_time() - started
        self._totals = totals
        if before is not None and cost > SWITCHES_BUDGET * interval:
            self._totals, self._resume_at = None, now + 2 * cost / SWITCHES_BUDGET - interval
        return None if before is None else total_scheduling(rises)
