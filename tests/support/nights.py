"""Values of a test of which only some run each time, and all at night (``--nightly``)."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def but(values: Iterable[Any], *, often: Container[Any]) -> list[Any]:
    """Return values for ``pytest.mark.parametrize``, those that are not ``often`` marked for the night.

    Args:
        values: all of them; a tuple has a value for each of several names.
        often: those that run each time.
    """
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=() if value in often else pytest.mark.nightly,
        )
        for value in values
    ]
