"""Whether a function of TensorFlow is what is known of it. One that is not stays as it is."""

from __future__ import absolute_import

import functools
import inspect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Optional, Sequence, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

_MARK = "_paceline_wrapped"
#: Who wraps a function to look at it; a cure wraps it by its name.
WATCH = "watch"


class UnknownSignature(Exception):
    """A function takes other arguments than those that are known."""


class Wrapped(Exception):
    """A function is wrapped already: its class is defined in one module and known by several."""


def check(function, expected, by=WATCH):
    # type: (Callable[..., Any], Sequence[str], str) -> None
    """Make sure that a function takes some arguments first, in order; it may take more.

    Args:
        function: of TensorFlow, or one that wraps it.
        expected: the names of the arguments.
        by: who is to wrap it: each does so once.

    Raises:
        UnknownSignature: it does not.
        Wrapped: it is wrapped so already.
    """
    if by in getattr(function, _MARK, ()):
        raise Wrapped(function.__qualname__)
    found = list(inspect.signature(function).parameters)
    if found[: len(expected)] != list(expected):
        raise UnknownSignature("%s takes %s" % (function.__qualname__, ", ".join(found)))


def takes(function, name):
    # type: (Callable[..., Any], str) -> bool
    """Whether a function has an argument of a name."""
    return name in inspect.signature(function).parameters


def wraps(original, by=WATCH):
    # type: (Callable[..., Any], str) -> Callable[[F], F]
    """Return a decorator as of ``functools.wraps``, which notes who wraps a function."""

    def mark(wrapper):
        # type: (F) -> F
        functools.update_wrapper(wrapper, original)
        setattr(wrapper, _MARK, getattr(original, _MARK, ()) + (by,))
        return wrapper

    return mark


def bound(function, arguments, named):
    # type: (Callable[..., Any], Sequence[Any], Mapping[str, Any]) -> Optional[inspect.BoundArguments]
    """Return a call's arguments by their names, which may be changed; None: the call does not fit.

    ``args`` and ``kwargs`` of it make the call.
    """
    try:
        return inspect.signature(function).bind(*arguments, **named)
    except TypeError:
        return None
