"""Shields the script from the instrumentation's own errors; after too many, the instrumentation stops."""

from __future__ import absolute_import

import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional, TypeVar

    from .reporting import Reporter

    T = TypeVar("T")

#: After this many errors of its own, the instrumentation stops.
MOST_ERRORS = 5


class Guard(object):
    """Calls the instrumentation's own code, never the script's.

    Args:
        reporter: records each error.

    Attributes:
        is_broken: whether there were too many errors; code that runs in each step checks it.
    """

    def __init__(self, reporter):
        # type: (Reporter) -> None
        self._reporter = reporter
        self._errors = 0
        self.is_broken = False

    def __call__(self, action, *arguments):
        # type: (Callable[..., T], *Any) -> Optional[T]
        """Return what an action returns; None if it raised, or if there were too many errors."""
        if self.is_broken:
            return None
        try:
            return action(*arguments)
        except Exception:  # noqa: BLE001 - the edge between the script and what looks at it
            self._errors += 1
            self.is_broken = self._errors >= MOST_ERRORS
            self._reporter.say("an error of its own: " + traceback.format_exc(limit=-4))
            if self.is_broken:
                self._reporter.say("its steps are not seen: there were %d errors of its own" % MOST_ERRORS)
            return None
