"""Checks that a function of TensorFlow or PyTorch has the signature we know; others are left unchanged."""

from __future__ import absolute_import

import contextlib
import functools
import inspect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Optional, Sequence, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

_MARK = "_paceline_wrapped"
#: The name under which the instrumentation wraps a function; a cure wraps it under its own name.
WATCH = "watch"


class UnknownSignature(Exception):
    """A function takes other arguments than the known ones."""


class Wrapped(Exception):
    """A function is already wrapped: its class is defined in one module and visible in several."""


def check(function, expected, by=WATCH):
    # type: (Callable[..., Any], Sequence[str], str) -> None
    """Check that a function's first arguments have these names, in this order; it may take more.

    Args:
        function: a function of the framework, or a wrapper of it.
        expected: the names of the arguments.
        by: the name under which it will be wrapped; each name wraps it once.

    Raises:
        UnknownSignature: the arguments differ.
        Wrapped: it is already wrapped under this name.
    """
    if by in getattr(function, _MARK, ()):
        raise Wrapped(function.__qualname__)
    found = list(inspect.signature(function).parameters)
    if found[: len(expected)] != list(expected):
        raise UnknownSignature("%s takes %s" % (function.__qualname__, ", ".join(found)))


def takes(function, name):
    # type: (Callable[..., Any], str) -> bool
    """Return whether a function has an argument of this name."""
    return name in inspect.signature(function).parameters


def wraps(original, by=WATCH):
    # type: (Callable[..., Any], str) -> Callable[[F], F]
    """Return a decorator like ``functools.wraps`` that also records under which name it wraps a function.

    The wrapper shows the function's own arguments. Keras asks ``inspect.getfullargspec`` for them, and that
    does not look behind a wrapper.
    """

    def mark(wrapper):
        # type: (F) -> F
        functools.update_wrapper(wrapper, original)
        with contextlib.suppress(ValueError, TypeError):  # Functions in C may show none.
            setattr(wrapper, "__signature__", inspect.signature(original))  # noqa: B010 - mypy does not know it
        setattr(wrapper, _MARK, getattr(original, _MARK, ()) + (by,))
        return wrapper

    return mark


def bound(function, arguments, named):
    # type: (Callable[..., Any], Sequence[Any], Mapping[str, Any]) -> Optional[inspect.BoundArguments]
    """Return a call's arguments by name, which can be changed; None: the call does not fit the function.

    Its ``args`` and ``kwargs`` make the changed call.
    """
    try:
        return inspect.signature(function).bind(*arguments, **named)
    except TypeError:
        return None
