"""Whether a function of TensorFlow is what is known of it. One that is not stays as it is."""

from __future__ import absolute_import

import inspect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


class UnknownSignature(Exception):
    """A function takes other arguments than those that are known."""


def check(function, expected):
    # type: (Callable[..., Any], Sequence[str]) -> None
    """Make sure that a function takes some arguments first, in order; it may take more.

    Raises:
        UnknownSignature: it does not.
    """
    found = list(inspect.signature(function).parameters)
    if found[: len(expected)] != list(expected):
        raise UnknownSignature("%s takes %s" % (function.__qualname__, ", ".join(found)))
