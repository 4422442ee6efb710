"""Where coroutines run for callers that are none: also within an event loop, as a notebook's cells are."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Loop(Protocol):
    """What brings coroutines to their end."""

    def run(self, coro: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns."""


class OtherThread:
    """An event loop that runs in another thread than its callers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def run(self, coro: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns; interrupted, it is cancelled."""
        future = asyncio.run_coroutine_threadsafe(coro, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise


@contextlib.contextmanager
def opened() -> Iterator[Loop]:
    """Give a loop: in this thread, or in one of its own when this one is busy with a loop already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        with asyncio.Runner() as runner:
            yield runner
        return
    with threaded() as made:
        yield made


@contextlib.contextmanager
def threaded() -> Iterator[Loop]:
    """Give a loop in a thread of its own, for callers in many threads at once."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="paceline-cluster", daemon=True)
    thread.start()
    try:
        yield OtherThread(loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def check_cancelled() -> None:
    """Let a task go on after an error, unless it was to end meanwhile.

    Where one of a group of tasks fails while all of them are cancelled, ``asyncio.TaskGroup`` raises the
    error alone: a loop that catches it and goes on would never end.

    Raises:
        CancelledError: it was.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
