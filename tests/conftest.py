from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from benchmarks import postgresqls
from benchmarks.protocols import NotHere

# A shell starts what it runs in the background with SIGINT ignored, and everything that the tests start would
# inherit that: Ctrl-C could not be tested there.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test depends on how quick the machine is.
settings.register_profile("paceline", deadline=None)
settings.load_profile("paceline")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[postgresqls.Postgresql]:
    """A PostgreSQL server that lives as long as the session."""
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(postgresqls.running())
        except NotHere as error:
            pytest.skip(str(error))
        yield server
