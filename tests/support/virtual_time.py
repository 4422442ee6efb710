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


class _NoWait(selectors.SelectSelector):
    """Moves a loop's clock on by the time that it would wait."""

    loop: VirtualTimeLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0 if timeout is not None else None)
        if not found and timeout is not None:
            self.loop.now_seconds += timeout
        return found


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is ``now_seconds``."""

    def __init__(self) -> None:
        self.now_seconds = 0.0
        selector = _NoWait()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now_seconds


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, as ``asyncio.run`` does; return what it returns."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
