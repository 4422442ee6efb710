"""A regular check that the parameters are still there.

A step notices a parameter server that lost its variables. A chief that waits for other trainers takes no step
and asks only the first server; the other trainers wait for the chief to give the variables values again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from paceline.training import sessions
from paceline.training.lazy_tensorflow import tf

LOOK_SECONDS = 2.0


class ParameterWatchdog:
    """Checks the variables, in a thread, as long as its context lasts."""

    def __init__(self, ready: Callable[[], Any], look_seconds: float = LOOK_SECONDS) -> None:
        """Take the function to check with.

        `ready` asks every server and returns whether all variables have values.
        """
        self._ready = ready
        self._look_seconds = look_seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch")
        self._error: Exception | None = None

    @property
    def has_lost(self) -> bool:
        """Whether variables have lost their values."""
        return self._error is not None

    def check(self) -> None:
        """Return if all variables have values.

        Raises:
            Exception: a check has found them lost; one of `sessions.STATE_LOST`.
        """
        if self._error is not None:
            raise self._error

    def __enter__(self) -> ParameterWatchdog:
        """Start the checks."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the checks."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while self._error is None and not self._ended.wait(self._look_seconds):
            try:
                if not self._ready():
                    raise tf.errors.FailedPreconditionError(None, None, "variables lost their values")
            except sessions.STATE_LOST as error:
                self._error = error
