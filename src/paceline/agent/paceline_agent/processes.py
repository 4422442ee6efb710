"""The processes of the command."""

import contextlib
import os
from typing import Dict, NamedTuple, Optional, Set

from .kernel_files import KeptFiles, parse_integer


class ProcessStat(NamedTuple):
    """Fields of one /proc/PID/stat."""

    parent: int
    cpu_ticks: int
    threads: int
    pages: int


def parse_process(text: str) -> Optional[ProcessStat]:
    """Parse /proc/PID/stat (proc.rst, table 1-4); cpu_ticks include children that it has reaped."""
    fields = text[text.rfind(")") + 1 :].split()[:22]
    values = [parse_integer(field) for field in fields[1:]]
    if len(values) < 21:
        return None
    parent, threads, pages = values[0], values[16], values[20]
    ticks = [value for value in values[10:14] if value is not None]
    if parent is None or threads is None or pages is None or len(ticks) < 4:
        return None
    return ProcessStat(parent, sum(ticks), threads, pages)


class ProcessTree:
    """The agent's descendants. The agent is their subreaper: they remain descendants if their parent ends."""

    def __init__(self, files: KeptFiles, root: int) -> None:
        self._files, self._root = files, root
        self._members: Dict[int, str] = {}
        self._strangers: Set[int] = set()
        self.ignored: Set[int] = set()
        self.ended_seconds = 0.0

    def refresh(self) -> Dict[int, ProcessStat]:
        """Return the current descendants; parents are read first, so that no CPU time counts twice."""
        present = {int(name) for name in os.listdir("/proc") if name.isdecimal()}
        self._strangers &= present
        unknown: Dict[int, int] = {}
        for pid in sorted(present - self._strangers - set(self._members) - self.ignored - {self._root}):
            process = parse_process(self._files.read(f"/proc/{pid}/stat") or "")
            self._files.forget(f"/proc/{pid}/stat")
            if process is not None:
                unknown[pid] = process.parent
        size = -1
        while size != len(unknown):
            size = len(unknown)
            for pid, parent in list(unknown.items()):
                if parent == self._root or parent in self._members:
                    self._members[pid] = f"/proc/{pid}/stat"
                    del unknown[pid]
                elif parent == 0 or parent in self._strangers:
                    self._strangers.add(pid)
                    del unknown[pid]
        while True:
            size, found = len(self._members), {}
            for pid, path in list(self._members.items()):
                process = parse_process(self._files.read(path) or "")
                if process is None:
                    del self._members[pid]
                else:
                    found[pid] = process
            if len(found) == size:  # else one was reaped: its parent now has its time, so all are read again
                return found

    def send(self, number: int) -> int:
        """Send a signal to every descendant; return how many there were."""
        self._strangers.clear()
        self.ignored.clear()
        processes = self.refresh()
        for pid in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        return len(processes)
