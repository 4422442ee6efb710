"""Reports of a cure: what it was applied to, or why it was not applied."""

from __future__ import absolute_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, TypeVar

    from ..reporting import Reporter

    T = TypeVar("T")

#: How many places of a cure are named; the others are counted.
_NAMED = 5
#: How much of a reason is reported: it may quote a TensorFlow error.
_MOST_CHARACTERS = 400


class Note(object):
    """Reports one cure of this process.

    Args:
        reporter: takes the reports.
        name: the name of the cure.
        version: the version of the cure; it changes if the cure's effect on a graph changes.
    """

    def __init__(self, reporter, name, version):
        # type: (Reporter, str, int) -> None
        self._reporter = reporter
        self._name = name
        self._version = version
        self._places = []  # type: List[str]
        self._refusals = []  # type: List[str]
        self._is_gathering = False

    def applied(self, place):
        # type: (str) -> None
        """Report that the cure was applied to a variable or another object, by its name.

        All places of a graph are reported together, with its first step.
        """
        if place in self._places:
            return
        self._places.append(place)
        if not self._is_gathering:
            self._is_gathering = True
            self._reporter.before_steps(self._append_places)

    def refused(self, reason):
        # type: (str) -> None
        """Report at once why the cure was not applied; each reason is reported once."""
        if reason not in self._refusals:
            self._refusals.append(reason)
            self._append("refused", len(self._refusals), reason[:_MOST_CHARACTERS])

    def attempt(self, change, *arguments):
        # type: (Callable[..., T], *Any) -> Optional[T]
        """Return the result of a change; None: it failed, and the reason was reported."""
        try:
            return change(*arguments)
        except Exception as error:  # noqa: BLE001 - the edge between the script and what changes it
            self.refused("%s: %s" % (type(error).__name__, error))
            return None

    def finish(self):
        # type: () -> None
        """Report at once what all cures were applied to: the script goes no further."""
        self._reporter.append_waiting()

    def _append_places(self):
        # type: () -> None
        self._is_gathering = False
        count = len(self._places)
        more = " and %d more" % (count - _NAMED) if count > _NAMED else ""
        self._append("applied", count, ", ".join(self._places[:_NAMED]) + more)

    def _append(self, outcome, count, message):
        # type: (str, int, str) -> None
        self._reporter.append(
            "cure",
            {
                "name": self._name,
                "version": self._version,
                "outcome": outcome,
                "count": count,
                "message": message,
            },
        )
