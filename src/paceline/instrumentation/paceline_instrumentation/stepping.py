"""Counts the steps of a trainer as they are made, and turns the counts into a report once a second."""

from __future__ import absolute_import

import atexit
import itertools
import operator
import threading
import time

from . import standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Optional, Tuple

    from .guarding import Guard
    from .reporting import Reporter

clock = time.perf_counter
#: Reports are about as frequent as the agent's samples.
REPORT_SECONDS = 1.0
#: If a script makes more steps a second than this, only one step per ``LOOK_SECONDS`` is measured; the steps
#: between are only counted, at most ``MOST_UNWATCHED`` in a row. Measuring one step costs as much as all our
#: other work for a hundred steps or more.
FAST_PER_SECOND, LOOK_SECONDS, MOST_UNWATCHED = 200, 0.05, 150
_NONE = iter(())  # type: Iterator[None]


class Unwatched(object):
    """Steps of one kind that are only counted.

    Most steps of a fast script are only counted, and a TensorFlow step evicts our data from the processor's
    caches. So this is one small object, whose iterator both counts and shows when the next step is to be
    measured. Taking an item is a single interpreter operation, so several threads lose no count.

    Attributes:
        kind: the identity of the item that such a step begins with; 0: each step is measured.
        left: has one item for each step that may still be made.
    """

    __slots__ = ("kind", "left")

    def __init__(self):
        # type: () -> None
        self.kind = 0
        self.left = _NONE


class Steps(object):
    """The steps of this process. Each step costs a count; some steps also cost two readings of the clock.

    Several threads may make steps: ``next`` on a count is a single interpreter operation, so no step is lost.

    Args:
        reporter: takes the reports.
        guard: shields the script from errors.

    Attributes:
        due: when a report is due, on ``clock``.
        unwatched: the steps that need not call ``add``. A step of this kind takes an item when it is done;
            the step that gets no item calls ``add_unwatched``.
        style: how the script trains; None: it has made no step yet.
        total_steps: the last step, if a hook sets it.
    """

    def __init__(self, reporter, guard):
        # type: (Reporter, Guard) -> None
        self._reporter = reporter
        self._guard = guard
        self._count = itertools.count(1)
        self._thread = threading.local()
        self._threads = 0
        self.unwatched = Unwatched()
        #: The items given to ``unwatched``, and their number. Popping them is a single operation.
        self._given = []  # type: List[Tuple[Iterator[None], int]]
        self._at_once = 0
        #: The steps only counted since the last measured step, and how long the measured step took.
        self._uncertain = 0
        self._step_seconds = 0.0
        self._waited = 0.0
        self._since = self._ended = clock()
        self._reported = 0
        self._last = {}  # type: Dict[str, Any]
        self.due = self._since + REPORT_SECONDS
        self.style = None  # type: Optional[str]
        self.total_steps = None  # type: Optional[int]
        self._standing = standing.StandWatch(reporter, guard, self._looked_on)

    def begin(self, style, described):
        # type: (str, str) -> None
        """Note that the script trains, and how; from now on remaining steps are also reported at exit.

        Args:
            style: what makes the steps.
            described: a description of them.
        """
        if self.style is None:
            self.style = style
            self._reporter.say("its steps, made by %s; %s" % (style, described))
            # The first step is reported at once: a script that ends soon might report nothing else.
            self._since = self.due = clock()
            atexit.register(self._guard, self._flush)
            self._guard(self._standing.start)

    def say(self, message):
        # type: (str) -> None
        """Report a message about the steps, once."""
        self._reporter.say(message)

    def add(self, begun, is_plain=True):
        # type: (float, bool) -> None
        """Count a step that has just ended.

        Args:
            begun: when it began, on ``clock``.
            is_plain: whether the step did no extra work; a reported or traced step takes longer.
        """
        thread, now = self._thread, clock()
        if not getattr(thread, "trains", False):
            thread.trains, thread.ended = True, begun
            self._threads += 1
        if self._given:
            self.watch()
        if is_plain:
            self._step_seconds = now - begun
        self._waited += self._between(begun)
        self._uncertain, thread.ended, self._ended = 0, now, now
        next(self._count)

    def is_fast(self):
        # type: () -> bool
        """Return whether some steps may be only counted: they are frequent, and one thread makes them."""
        return self._at_once > 0 and self._threads == 1

    def are_here(self):
        # type: () -> bool
        """Return whether this thread has made a step."""
        return getattr(self._thread, "trains", False)

    def has_threads(self):
        # type: () -> bool
        """Return whether several threads make steps."""
        return self._threads > 1

    def leave_unwatched(self, kind):
        # type: (int) -> None
        """Let the next steps of a kind be only counted, until one has to be measured.

        Args:
            kind: the identity of the item that they begin with; 0: no kind.
        """
        unwatched = self.unwatched
        unwatched.left = itertools.repeat(None, self._at_once)
        self._given.append((unwatched.left, self._at_once))
        unwatched.kind = kind

    def add_unwatched(self):
        # type: () -> None
        """Count a step that was not measured and found no item left; the next step is measured."""
        self.watch()
        next(self._count)
        self._uncertain += 1

    def watch(self):
        # type: () -> None
        """Count the steps that have taken an item, and let the next step be measured."""
        unwatched = self.unwatched
        unwatched.kind, unwatched.left = 0, _NONE
        try:
            left, given = self._given.pop()
        except IndexError:
            return
        taken = given - operator.length_hint(left)
        next(itertools.islice(self._count, taken, taken), None)  # Advances the count.
        self._uncertain += taken

    def _between(self, begun):
        # type: (float) -> float
        """Return this thread's seconds between steps, from its last measured step up to a time.

        Steps that were only counted are assumed to have taken as long as the last measured one.
        """
        ended = getattr(self._thread, "ended", begun)  # type: float
        return begun - ended - self._uncertain * self._step_seconds

    def waited(self, begun):
        # type: (float) -> float
        """Return the seconds between the end of this thread's last step and a time on ``clock``.

        If the last steps were only counted, this is the mean wait before each of them.
        """
        self.watch()
        return max(0.0, self._between(begun)) / (self._uncertain + 1)

    def step_microseconds(self):
        # type: () -> Optional[float]
        """Return the mean duration of a step since the last report, without waiting.

        None: there was no step, or several threads make steps at once.
        """
        if self.has_threads():
            return None
        steps = self.total() - self._reported
        return max(0.0, clock() - self._since - self._waited) * 1e6 / steps if steps else None

    def pass_by(self, begun):
        # type: (float) -> None
        """Note that other work than a step began then and has just ended: it does not count as waiting."""
        if getattr(self._thread, "trains", False):
            self.watch()
            # The time before it does not count as waiting, either.
            self._waited += self._between(begun) * self._uncertain / (self._uncertain + 1)
            self._ended = self._last_ended()
            self._uncertain, self._thread.ended = 0, clock()

    def _last_ended(self):
        # type: () -> float
        """Return when the last step ended; those only counted took as long as the last measured one."""
        return min(clock(), self._ended + self._uncertain * self._step_seconds)

    def total(self):
        # type: () -> int
        """Return how many steps were made."""
        self.watch()
        return self._counted()

    def _counted(self):
        # type: () -> int
        """Return how many steps were made, without those that have only taken an item."""
        # The text of a count, such as "count(12)", is the only way to read it without counting.
        return int(repr(self._count)[6:-1]) - 1

    def _looked_on(self):
        # type: () -> int
        """Return how many steps another thread sees, and have the step that is now made measured.

        Otherwise steps that suddenly become slow would be only counted for minutes, without any report.
        """
        self.unwatched.left = _NONE
        return self._counted()

    def report(self, said, is_fed, until=None):
        # type: (Dict[str, Any], bool, Optional[float]) -> None
        """Report the steps since the last report, and start the next interval.

        Args:
            said: ``step``, ``loss`` and ``batch`` of a step just made.
            is_fed: whether the script makes its batches between the steps.
            until: when the last of these steps ended, on ``clock``; None: just now.
        """
        now, total = clock() if until is None else until, self.total()
        steps = total - self._reported
        batch = said.pop("batch", None)
        # The waits of several threads cannot be told from each other's steps.
        is_waiting = is_fed and not self.has_threads()
        report = {
            "interval_seconds": now - self._since,
            "steps": steps,
            "examples": None if batch is None else steps * batch,
            "input_wait_seconds": min(max(0.0, self._waited), now - self._since) if is_waiting else None,
            "total_steps": self.total_steps,
        }
        if until is not None:
            report["at"] = time.time() - (clock() - until)
        report.update(said)
        if report.get("step") is None:
            report["step"] = total
        self._last = {"step": said.get("step"), "batch": batch, "is_fed": is_fed}
        self._at_once = _at_once(steps, now - self._since)
        self._since, self._reported, self._waited, self.due = now, total, 0.0, now + REPORT_SECONDS
        if self._reporter.owns():
            self._reporter.append("step", report)

    def _flush(self):
        # type: () -> None
        """Report the steps since the last report. What the script did after the last one is no training."""
        steps = self.total() - self._reported
        if steps:
            last = self._last
            step = last.get("step")
            # Other workers may have made steps meanwhile; these are certain.
            said = {
                "step": None if step is None else step + steps,
                "loss": None,
                "batch": last.get("batch"),
            }
            self.report(said, last.get("is_fed", False), self._last_ended())


def _at_once(steps, seconds):
    # type: (int, float) -> int
    """Return how many steps in a row may be only counted, given the steps made in a time."""
    if seconds < REPORT_SECONDS / 2 or steps < FAST_PER_SECOND * seconds:
        return 0
    return min(MOST_UNWATCHED, int(steps / seconds * LOOK_SECONDS))
