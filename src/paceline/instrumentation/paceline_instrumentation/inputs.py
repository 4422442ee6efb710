"""Measures where a script's batches come from: bytes it feeds, bytes it reads, CPU time of its own Python.

This happens once a second, with a report; nothing is measured in other steps.
"""

from __future__ import absolute_import

import re
import time

from .saving import Milestones

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Optional

    from .reporting import Reporter
    from .stepping import Steps

_READ = re.compile(r"^rchar: (\d+)$", re.MULTILINE)


class InputWatch(object):
    """Compares consecutive reports of a thread that makes its batches between its steps.

    Args:
        reporter: takes the facts.
        steps: knows how many steps were made in between.
    """

    def __init__(self, reporter, steps):
        # type: (Reporter, Steps) -> None
        self._reporter = reporter
        self._steps = steps
        self._reports = Milestones()
        self._before = None  # type: Optional[_Moment]

    def note(self, fed):
        # type: (Mapping[str, Any]) -> None
        """Note what a reported step was fed; nothing is noted if several threads make steps.

        Args:
            fed: arrays, by the names of tensors.
        """
        if self._before is None:
            self._before = _Moment(self._steps.total())
            return
        if not self._reports.reached():
            return
        before, now = self._before, _Moment(self._steps.total())
        self._before = now
        steps = now.steps - before.steps
        if steps <= 0 or now.at <= before.at or self._steps.has_threads():
            return
        self._reporter.state("feeds_bytes_per_step", float(sum(each.nbytes for each in fed.values())))
        share = (now.cpu_seconds - before.cpu_seconds) / (now.at - before.at)
        self._reporter.state("python_share", round(min(1.0, share), 3))
        if now.read_bytes is not None and before.read_bytes is not None:
            self._reporter.state("reads_bytes_per_step", float(now.read_bytes - before.read_bytes) / steps)


class _Moment(object):
    """The clocks and counters of this thread and this process at one moment.

    Attributes:
        read_bytes: bytes read by system calls from files and pipes, not from sockets; None: unknown.
    """

    def __init__(self, steps):
        # type: (int) -> None
        self.steps = steps
        self.at = time.perf_counter()
        self.cpu_seconds = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
        self.read_bytes = None  # type: Optional[int]
        try:
            with open("/proc/self/io") as file:
                found = _READ.search(file.read())
            self.read_bytes = int(found.group(1)) if found else None
        except OSError:
            pass
