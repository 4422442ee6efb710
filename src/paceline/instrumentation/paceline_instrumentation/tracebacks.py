"""Removes the instrumentation's frames from the tracebacks of errors that the script does not catch."""

from __future__ import absolute_import

import os
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Optional, Set, Type

_FOLDER = os.path.dirname(os.path.abspath(__file__))
#: Errors may have other errors as causes; at most this many are cleaned.
_MOST_ERRORS = 100


def connect():
    # type: () -> None
    """Print errors without our frames, unless the script has hooks of its own.

    Python can change a traceback from 3.7 on; before that, our frames show the name of this package.
    """
    if sys.version_info < (3, 7):
        return
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print
    original = getattr(threading, "excepthook", None)  # From 3.8 on.
    if original is not None and original is getattr(threading, "__excepthook__", original):

        def print_of_thread(arguments):
            # type: (Any) -> None
            _clean(arguments.exc_value)
            original(arguments)

        threading.excepthook = print_of_thread


def _print(kind, error, trace):
    # type: (Type[BaseException], BaseException, Optional[TracebackType]) -> None
    _clean(error)
    sys.__excepthook__(kind, error, error.__traceback__ or trace)


def _clean(error):
    # type: (Optional[BaseException]) -> None
    """Remove our frames from the traceback of an error and of the errors that led to it."""
    left = [error]
    seen = set()  # type: Set[int]
    while left and len(seen) < _MOST_ERRORS:
        each = left.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = _without_ours(each.__traceback__)
            left += [each.__cause__, each.__context__]


def _without_ours(trace):
    # type: (Optional[TracebackType]) -> Optional[TracebackType]
    """Return a traceback without our frames; a traceback of our frames alone stays unchanged."""
    tracebacks = []
    at = trace
    while at is not None:
        if not at.tb_frame.f_code.co_filename.startswith(_FOLDER):
            tracebacks.append(at)
        at = at.tb_next
    if not tracebacks:
        return trace
    for preceding, following in zip(tracebacks, tracebacks[1:] + [None]):
        preceding.tb_next = following
    return tracebacks[0]
