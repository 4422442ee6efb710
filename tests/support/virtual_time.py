"""asyncio on a clock of its own: time passes only while all tasks wait, and takes none of the machine's.

So a test of intervals and deadlines uses the real ones, waits for none of them, and means the same however
busy the machine is. It works for what tells time by the loop (``asyncio.sleep``, ``asyncio.timeout``,
``loop.time()``) and waits for no thread and no other process.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Clock(selectors.SelectSelector):
    """Moves on by the time that a loop would wait for."""

    now_seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout is not None else None)
        if not ready and timeout is not None:
            self.now_seconds += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that begins at 0 s, and whose time passes while it would wait."""

    def __init__(self) -> None:
        self._clock = _Clock()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now_seconds


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, as ``asyncio.run`` does; return what it returns."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
