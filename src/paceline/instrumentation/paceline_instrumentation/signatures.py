"""Whether a function of TensorFlow is what is known of it. One that is not stays as it is."""

from __future__ import absolute_import

import functools
import inspect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

_MARK = "_paceline_wrapped"


class UnknownSignature(Exception):
    """A function takes other arguments than those that are known."""


class Wrapped(Exception):
    """A function is wrapped already: its class is defined in one module and known by several."""


def check(function, expected):
    # type: (Callable[..., Any], Sequence[str]) -> None
    """Make sure that a function takes some arguments first, in order; it may take more.

    Raises:
        UnknownSignature: it does not.
        Wrapped: it is one of ours.
    """
    if hasattr(function, _MARK):
        raise Wrapped(function.__qualname__)
    found = list(inspect.signature(function).parameters)
    if found[: len(expected)] != list(expected):
        raise UnknownSignature("%s takes %s" % (function.__qualname__, ", ".join(found)))


def wraps(original):
    # type: (Callable[..., Any]) -> Callable[[F], F]
    """Return a decorator as of ``functools.wraps``, which marks what wraps a function."""

    def mark(wrapper):
        # type: (F) -> F
        functools.update_wrapper(wrapper, original)
        setattr(wrapper, _MARK, True)
        return wrapper

    return mark
