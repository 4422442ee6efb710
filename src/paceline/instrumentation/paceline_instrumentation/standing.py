"""Reports what a trainer does while no step ends: waits for input, waits within a step, or computes.

A thread checks the count of steps every few seconds. Only if the count has not changed for longer than ten
steps take does it check where the training thread is, by its stack, and whether the process computes. So a
step costs nothing.
"""

from __future__ import absolute_import

import atexit
import os
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Callable, Optional, Tuple

    from .guarding import Guard
    from .reporting import Reporter

clock = time.perf_counter
#: How often the count is checked.
LOOK_SECONDS = 2.0
#: A trainer stands still if it makes no step for this many times a step's duration, and for at least this
#: many seconds. Before its first step it gets longer: it makes its variables, or waits for a chief.
STEPS, LEAST_SECONDS, FIRST_SECONDS = 10.0, 10.0, 30.0
#: A process that uses fewer cores counts as waiting.
BUSY_CORES = 0.2
#: The most lines that one process reports.
MOST_LINES = 100
_LAST_SECONDS = 5.0
#: Files that show that a thread waits for input, or is within a step: of Paceline's training library and of
#: TensorFlow, by the end of the file's name.
_INPUT = ("training/input/inputs.py", "training/input/shared_queues.py", "data/ops/iterator_ops.py")
_WITHIN = (
    "python/client/session.py",
    "python/eager/execute.py",
    "python/eager/context.py",
    "coordinator/cluster_coordinator.py",
)
_LIBRARIES = (
    os.sep + "site-packages" + os.sep,
    os.sep + "dist-packages" + os.sep,
    os.path.dirname(os.__file__),
)
_OWN = os.path.dirname(os.path.abspath(__file__))


class StandWatch(object):
    """Follows the count of steps of this process.

    Args:
        reporter: takes the reports.
        guard: shields the script from errors.
        count: returns how many steps were made; a separate thread calls it.
    """

    def __init__(self, reporter, guard, count):
        # type: (Reporter, Guard, Callable[[], int]) -> None
        self._reporter = reporter
        self._guard = guard
        self._count = count
        self._thread = None  # type: Optional[int]
        self._ended = threading.Event()
        self._total = 0
        self._moved_at = self._began = self._looked_at = clock()
        self._used = time.process_time()
        self._said = self._seen = None  # type: Optional[Tuple[str, str]]
        self._stands = False
        self._lines = 0

    def start(self, thread=None):
        # type: (Optional[int]) -> None
        """Start to watch; further calls do nothing.

        Args:
            thread: the thread that trains; None: the calling thread.
        """
        if self._thread is not None:
            return
        self._thread = threading.current_thread().ident if thread is None else thread
        self._total = self._count()
        self._moved_at = self._began = self._looked_at = clock()
        self._used = time.process_time()
        looking = threading.Thread(target=self._follow, name="paceline standing", daemon=True)
        atexit.register(self._end, looking)
        looking.start()

    def _end(self, looking):
        # type: (threading.Thread) -> None
        self._ended.set()
        looking.join(_LAST_SECONDS)

    def _follow(self):
        # type: () -> None
        while not self._guard.is_broken and self._lines < MOST_LINES and not self._ended.wait(LOOK_SECONDS):
            self._guard(self.look)

    def look(self):
        # type: () -> None
        """Check for a step since the last look; report what the trainer does if none was made for long."""
        now, total, used = clock(), self._count(), time.process_time()
        cores = (used - self._used) / max(now - self._looked_at, 1e-3)
        self._looked_at, self._used = now, used
        if total != self._total:
            if self._stands:  # Steps did not take this time.
                self._began += now - self._moved_at
            self._total, self._moved_at, self._stands = total, now, False
            self._said = self._seen = None
            return
        if not self._stands and now - self._moved_at < self._least_seconds():
            return
        self._stands = True
        seen, self._seen = self._seen, self._doing(cores)
        # A state that only one look sees is transient.
        is_lasting = seen is not None and seen[0] == self._seen[0]
        if is_lasting and (self._said is None or self._seen[0] != self._said[0]):
            self._said = self._seen
            self._say(self._seen, time.time() - (now - self._moved_at))

    def _least_seconds(self):
        # type: () -> float
        if not self._total:
            return FIRST_SECONDS
        return max(LEAST_SECONDS, STEPS * (self._moved_at - self._began) / self._total)

    def _say(self, seen, since):
        # type: (Tuple[str, str], float) -> None
        if self._reporter.owns():
            self._lines += 1
            self._reporter.append("standing", {"doing": seen[0], "where": seen[1], "since": since})

    def _doing(self, cores):
        # type: (float) -> Tuple[str, str]
        """Return what the training thread does, and where in the script it is."""
        frame = sys._current_frames().get(self._thread or 0)
        doing, where = place(frame)
        return ("computing" if cores >= BUSY_CORES else doing), where


def place(frame):
    # type: (Optional[FrameType]) -> Tuple[str, str]
    """Return what a thread waits for, by its innermost frame, and the script's line that it is in."""
    doing, where = "", ""
    while frame is not None:
        name = frame.f_code.co_filename
        plain = name.replace(os.sep, "/")
        if not doing and plain.endswith(_INPUT):
            doing = "input"
        elif not doing and plain.endswith(_WITHIN):
            doing = "step"
        if not where and not name.startswith(("<", _OWN)) and not any(each in name for each in _LIBRARIES):
            where = "%s:%d (%s)" % (os.path.basename(name), frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return doing or "between", where
