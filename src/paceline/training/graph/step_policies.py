"""How a trainer takes its steps beside the others: what the modes of consistency have in common."""

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
    """A step that is over: the global step after it, the loss, how long it waited for other trainers, and
    whether its gradient came too late.
    """

    step: int
    loss: float
    waited_seconds: float = 0.0
    dropped: bool = False


class StepPolicy(Protocol):
    """Takes the steps of one trainer."""

    def rest(self) -> None:
        """Lets no other trainer wait for it until its next step: it has no batch, and no step under way."""

    def wait(self) -> None:
        """Waits until the next step may start, or the trainer is to stop."""

    def step(self, batch: Any) -> Finished:
        """Takes a step; several may be under way in threads."""


class Asynchronous:
    """Takes the steps of a trainer that waits for no other."""

    def __init__(self, step: Callable[[Any], Sequence[Any]]) -> None:
        """`step` takes a batch and returns the global step and the loss."""
        self._step = step

    def rest(self) -> None:
        """No other trainer waits for it anyway."""

    def wait(self) -> None:
        """Returns at once."""

    def step(self, batch: Any) -> Finished:
        """Takes a step."""
        step, loss, *_ = self._step(batch)
        return Finished(int(step), float(loss))


class PollPauses:
    """Pauses between looks at what others do: short at first, so that a short wait stays short.

    The longest is for looks that cost something. A long wait is logged now and then, if it has a name.
    """

    def __init__(self, awaited: str | None = None, longest_seconds: float = _LONGEST_SECONDS) -> None:
        self._awaited = awaited
        self._seconds = _SHORTEST_SECONDS
        self._longest_seconds = longest_seconds
        self._noticed = time.monotonic()

    def next(self) -> None:
        """Sleeps for the next pause."""
        time.sleep(self._seconds)
        self._seconds = min(2 * self._seconds, self._longest_seconds)
        if self._awaited is not None and time.monotonic() - self._noticed > _NOTICE_SECONDS:
            self._noticed = time.monotonic()
            _log.info("still waiting for %s", self._awaited)
