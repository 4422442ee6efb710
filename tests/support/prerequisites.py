"""What a test or a benchmark needs that a machine may lack."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest


class NotHere(Exception):
    """A test or a benchmark cannot run here, and what it lacks."""


@contextlib.contextmanager
def skipping() -> Iterator[None]:
    """Skip the test if what begins within the block cannot run here."""
    try:
        yield
    except NotHere as error:
        pytest.skip(str(error))
