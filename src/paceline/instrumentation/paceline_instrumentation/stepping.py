"""Counts the steps of a trainer as they are made; once a second what was counted becomes a report."""

from __future__ import absolute_import

import atexit
import itertools
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

    from .guarding import Guard
    from .reporting import Reporter

clock = time.perf_counter
#: A report comes about as often as the agent takes a sample.
REPORT_SECONDS = 1.0


class Steps(object):
    """The steps of this process. In a step they cost a count and a look at the clock.

    Several threads may make steps: ``next`` on a count is one operation of the interpreter, so none is lost.

    Args:
        reporter: takes the reports.
        guard: keeps errors from the script.

    Attributes:
        due: when a report is due, on ``clock``.
        style: how the script trains; None: it has made no step yet.
        total_steps: the last step, where a hook says it.
    """

    def __init__(self, reporter, guard):
        # type: (Reporter, Guard) -> None
        self._reporter = reporter
        self._guard = guard
        self._count = itertools.count(1)
        self._thread = threading.local()
        self._waited = 0.0
        self._since = clock()
        self._reported = 0
        self._last = {}  # type: Dict[str, Any]
        self.due = self._since + REPORT_SECONDS
        self.style = None  # type: Optional[str]
        self.total_steps = None  # type: Optional[int]

    def begin(self, style, described):
        # type: (str, str) -> None
        """Take note that the script trains, and how; from now on the end of the process is reported, too.

        Args:
            style: by what it makes its steps.
            described: what is seen of them.
        """
        if self.style is None:
            self.style = style
            self._reporter.say("its steps, made by %s; %s" % (style, described))
            # The first step is reported at once: of a script that ends soon nothing else would say more.
            self._since = self.due = clock()
            atexit.register(self._guard, self._flush)

    def say(self, message):
        # type: (str) -> None
        """Say something about what is seen of the steps, once."""
        self._reporter.say(message)

    def add(self, begun):
        # type: (float) -> None
        """Count a step that began at a time on ``clock`` and has just ended."""
        thread, now = self._thread, clock()
        self._waited += begun - getattr(thread, "ended", begun)
        thread.ended = now
        next(self._count)

    def waited(self, begun):
        # type: (float) -> float
        """Return the seconds between the end of this thread's last step and a time on ``clock``."""
        return begun - getattr(self._thread, "ended", begun)

    def step_microseconds(self):
        # type: () -> Optional[float]
        """Return how long a step took since the last report, without waiting; None: there was none."""
        steps = self.total() - self._reported
        return max(0.0, clock() - self._since - self._waited) * 1e6 / steps if steps else None

    def pass_by(self):
        # type: () -> None
        """Take note that something else than a step has just ended, so that it is not taken for waiting."""
        if self.style is not None:
            self._thread.ended = clock()

    def total(self):
        # type: () -> int
        """Return how many steps were counted."""
        # The text of a count is the one way to look at it without counting: "count(12)".
        return int(repr(self._count)[6:-1]) - 1

    def report(self, said, is_fed):
        # type: (Dict[str, Any], bool) -> None
        """Report the steps since the last report, and begin anew.

        Args:
            said: ``step``, ``loss`` and ``batch``, of a step just made.
            is_fed: whether the script makes its batches between the steps.
        """
        now, total = clock(), self.total()
        steps = total - self._reported
        batch = said.pop("batch", None)
        report = {
            "interval_seconds": now - self._since,
            "steps": steps,
            "examples": None if batch is None else steps * batch,
            "input_wait_seconds": self._waited if is_fed else None,
            "total_steps": self.total_steps,
        }
        report.update(said)
        if report.get("step") is None:
            report["step"] = total
        self._last = {"step": said.get("step"), "batch": batch, "is_fed": is_fed}
        self._since, self._reported, self._waited, self.due = now, total, 0.0, now + REPORT_SECONDS
        if self._reporter.owns():
            self._reporter.append("step", report)

    def _flush(self):
        # type: () -> None
        """Report what was counted since the last report."""
        steps = self.total() - self._reported
        if steps:
            last = self._last
            step = last.get("step")
            # Others may have made steps meanwhile; these are sure.
            said = {
                "step": None if step is None else step + steps,
                "loss": None,
                "batch": last.get("batch"),
            }
            self.report(said, last.get("is_fed", False))
