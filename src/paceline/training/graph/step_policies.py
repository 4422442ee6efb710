"""How a trainer takes its steps beside the other trainers: what the modes of consistency have in common."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

MakeStep = Callable[[Sequence[Any], Sequence[Any]], Callable[..., Any]]
"""Makes, of what is fetched and what is fed, a function that runs a step on the values fed."""

_log = logging.getLogger(__name__)
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.001, 0.02
_NOTICE_SECONDS = 10.0


@dataclass(frozen=True)
class Finished:
    """A finished step.

    `step` is the global step after it. `waited_seconds` is how long it waited for other trainers. `dropped`
    says that its gradient came too late.
    """

    step: int
    loss: float
    waited_seconds: float = 0.0
    dropped: bool = False


class StepPolicy(Protocol):
    """Takes the steps of one trainer."""

    def rest(self) -> None:
        """Keep other trainers from waiting for this one until its next step.

        The trainer has no batch, and no step under way.
        """

    def wait(self) -> None:
        """Wait until the next step may start or the trainer has to stop."""

    def step(self, batch: Any) -> Finished:
        """Take a step; several may be under way in threads."""


class Asynchronous:
    """Takes the steps of a trainer that waits for no other."""

    def __init__(self, step: Callable[[Any], Sequence[Any]]) -> None:
        """`step` takes a batch and returns the global step and the loss."""
        self._step = step

    def rest(self) -> None:
        """Do nothing: no other trainer waits for this one."""

    def wait(self) -> None:
        """Return at once."""

    def step(self, batch: Any) -> Finished:
        """Take a step."""
        step, loss, *_ = self._step(batch)
        return Finished(int(step), float(loss))


class PollPauses:
    """Pauses between polls of other replicas' state: short at first, so that a short wait stays short.

    Raise `longest_seconds` for polls that are expensive. A long wait is logged every few seconds if `awaited`
    names it.
    """

    def __init__(self, awaited: str | None = None, longest_seconds: float = _LONGEST_SECONDS) -> None:
        self._awaited = awaited
        self._seconds = _SHORTEST_SECONDS
        self._longest_seconds = longest_seconds
        self._noticed = time.monotonic()

    def next(self) -> None:
        """Sleep for the next pause."""
        time.sleep(self._seconds)
        self._seconds = min(2 * self._seconds, self._longest_seconds)
        if self._awaited is not None and time.monotonic() - self._noticed > _NOTICE_SECONDS:
            self._noticed = time.monotonic()
            _log.info("still waiting for %s", self._awaited)
