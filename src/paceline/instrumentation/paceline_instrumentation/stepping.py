"""Counts the steps of a trainer as they are made; once a second what was counted becomes a report."""

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
#: A report comes about as often as the agent takes a sample.
REPORT_SECONDS = 1.0
#: Of a script that makes more steps a second, one is looked at so often, and the others are only counted, at
#: most so many one after the other. A look costs as much as all that is done for some hundred other steps.
FAST_PER_SECOND, LOOK_SECONDS, MOST_UNWATCHED = 200, 0.05, 150
_NONE = iter(())  # type: Iterator[None]


class Unwatched(object):
    """Steps of one kind that are only counted.

    Most steps of a fast script are, and a step of TensorFlow leaves nothing of ours in the processor's
    caches. So this is one small object, and one iterator both counts and says when the next look is due. To
    take an item is one operation of the interpreter, so several threads lose none.

    Attributes:
        kind: the identity of what makes such a step; 0: each step is looked at.
        left: has an item for each step that may be made.
    """

    __slots__ = ("kind", "left")

    def __init__(self):
        # type: () -> None
        self.kind = 0
        self.left = _NONE


class Steps(object):
    """The steps of this process. In a step they cost a count, in some of them also two looks at the clock.

    Several threads may make steps: ``next`` on a count is one operation of the interpreter, so none is lost.

    Args:
        reporter: takes the reports.
        guard: keeps errors from the script.

    Attributes:
        due: when a report is due, on ``clock``.
        unwatched: the steps that need not call ``add``. They are made while it has their kind, and take an
        item when they are done; the step that gets none calls ``add_unwatched``.
        style: how the script trains; None: it has made no step yet.
        total_steps: the last step, where a hook says it.
    """

    def __init__(self, reporter, guard):
        # type: (Reporter, Guard) -> None
        self._reporter = reporter
        self._guard = guard
        self._count = itertools.count(1)
        self._thread = threading.local()
        self._threads = 0
        self.unwatched = Unwatched()
        #: What ``unwatched`` has been given: its items, and how many they were. To pop it is one operation.
        self._given = []  # type: List[Tuple[Iterator[None], int]]
        self._at_once = 0
        #: Steps that were only counted since the last one that was looked at, and how long that one took.
        self._uncertain = 0
        self._step_seconds = 0.0
        self._waited = 0.0
        self._since = clock()
        self._reported = 0
        self._last = {}  # type: Dict[str, Any]
        self.due = self._since + REPORT_SECONDS
        self.style = None  # type: Optional[str]
        self.total_steps = None  # type: Optional[int]
        self._standing = standing.StandWatch(reporter, guard, self._looked_on)

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
            self._guard(self._standing.start)

    def say(self, message):
        # type: (str) -> None
        """Say something about what is seen of the steps, once."""
        self._reporter.say(message)

    def add(self, begun, is_plain=True):
        # type: (float, bool) -> None
        """Count a step that has just ended.

        Args:
            begun: when it began, on ``clock``.
            is_plain: whether it did no more than others; one that is reported or traced takes longer.
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
        self._uncertain, thread.ended = 0, now
        next(self._count)

    def is_fast(self):
        # type: () -> bool
        """Whether some steps may be only counted: there are many a second, and one thread makes them."""
        return self._at_once > 0 and self._threads == 1

    def are_here(self):
        # type: () -> bool
        """Whether this thread has made a step."""
        return getattr(self._thread, "trains", False)

    def has_threads(self):
        # type: () -> bool
        """Whether several threads make steps."""
        return self._threads > 1

    def leave_unwatched(self, kind):
        # type: (int) -> None
        """Let the next steps of a kind be only counted, until one is to be looked at.

        Args:
            kind: the identity of what makes them; 0: of none.
        """
        unwatched = self.unwatched
        unwatched.left = itertools.repeat(None, self._at_once)
        self._given.append((unwatched.left, self._at_once))
        unwatched.kind = kind

    def add_unwatched(self):
        # type: () -> None
        """Count a step that was not looked at and for which no item was left; the next one is looked at."""
        self.watch()
        next(self._count)
        self._uncertain += 1

    def watch(self):
        # type: () -> None
        """Count the steps that have taken an item, and have the next one looked at."""
        unwatched = self.unwatched
        unwatched.kind, unwatched.left = 0, _NONE
        try:
            left, given = self._given.pop()
        except IndexError:
            return
        taken = given - operator.length_hint(left)
        next(itertools.islice(self._count, taken, taken), None)  # Takes so many from it.
        self._uncertain += taken

    def _between(self, begun):
        # type: (float) -> float
        """Return the seconds between the steps of this thread since one was looked at, up to a time.

        Those that were only counted are taken to be as long as the last one that was looked at.
        """
        ended = getattr(self._thread, "ended", begun)  # type: float
        return begun - ended - self._uncertain * self._step_seconds

    def waited(self, begun):
        # type: (float) -> float
        """Return the seconds between the end of this thread's last step and a time on ``clock``.

        Where the last steps were only counted it is the mean of them.
        """
        self.watch()
        return max(0.0, self._between(begun)) / (self._uncertain + 1)

    def step_microseconds(self):
        # type: () -> Optional[float]
        """Return how long a step took since the last report, without waiting; None: there was none."""
        steps = self.total() - self._reported
        return max(0.0, clock() - self._since - self._waited) * 1e6 / steps if steps else None

    def pass_by(self, begun):
        # type: (float) -> None
        """Take note that something else than a step began then and has just ended: it was not waited for."""
        if getattr(self._thread, "trains", False):
            self.watch()
            # What lies before it is not waited for, either.
            self._waited += self._between(begun) * self._uncertain / (self._uncertain + 1)
            self._uncertain, self._thread.ended = 0, clock()

    def total(self):
        # type: () -> int
        """Return how many steps were made."""
        self.watch()
        return self._counted()

    def _counted(self):
        # type: () -> int
        """Return how many steps were made, but for those that have only taken an item."""
        # The text of a count is the one way to look at it without counting: "count(12)".
        return int(repr(self._count)[6:-1]) - 1

    def _looked_on(self):
        # type: () -> int
        """Return how many steps another thread sees, and have the step that is made now looked at.

        Steps that get slow all at once would else be only counted for minutes, and nothing would be said.
        """
        self.unwatched.left = _NONE
        return self._counted()

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
            "input_wait_seconds": max(0.0, self._waited) if is_fed else None,
            "total_steps": self.total_steps,
        }
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


def _at_once(steps, seconds):
    # type: (int, float) -> int
    """Return how many steps may be only counted one after the other, of a script that made some in a time."""
    if seconds < REPORT_SECONDS / 2 or steps < FAST_PER_SECOND * seconds:
        return 0
    return min(MOST_UNWATCHED, int(steps / seconds * LOOK_SECONDS))
