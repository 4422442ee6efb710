"""Counts steps as they are made; once a second what was counted becomes a report."""

from __future__ import absolute_import

import itertools
import time

if False:  # for type checkers
    from typing import Any, Callable, Dict, Optional

clock = time.perf_counter
#: A report comes about as often as the agent takes a sample.
REPORT_SECONDS = 1.0


class StepCounter(object):
    """The steps of one trainer. In a step it costs a count and a look at the clock.

    Several threads may make steps: ``next`` on a count is one operation of the interpreter, so none is lost.

    Attributes:
        count: ``next(count)`` counts a step.
        due: when a report is due, on ``clock``.
    """

    def __init__(self):
        # type: () -> None
        self.count = itertools.count(1)
        self.due = clock() + REPORT_SECONDS
        self._since = clock()
        self._reported = 0

    def total(self):
        # type: () -> int
        """Return how many steps were counted."""
        # The text of a count is the one way to look at it without counting: "count(12)".
        return int(repr(self.count)[6:-1]) - 1

    def interval(self):
        # type: () -> Dict[str, Any]
        """Return the seconds and steps since this was asked last, and begin anew."""
        now, total = clock(), self.total()
        found = {"interval_seconds": now - self._since, "steps": total - self._reported}
        self._since, self._reported, self.due = now, total, now + REPORT_SECONDS
        return found
