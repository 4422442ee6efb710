"""Event loops in which synchronous callers run coroutines, even inside a running loop, as in a notebook."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Loop(Protocol):
    """An event loop that runs coroutines to completion."""

    def run(self, coro: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result."""


class OtherThread:
    """An event loop that runs in a different thread from its callers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def run(self, coro: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result; a keyboard interrupt cancels the coroutine."""
        future = asyncio.run_coroutine_threadsafe(coro, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise


@contextlib.contextmanager
def opened() -> Iterator[Loop]:
    """Yield a loop: in this thread, or in a thread of its own if this thread already runs a loop."""
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
    """Yield a loop in a thread of its own, for concurrent callers in several threads."""
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
    """Check that the current task has not been cancelled; call it before a task continues after an error.

    If a task of a group fails while all of them are cancelled, ``asyncio.TaskGroup`` raises only the error: a
    loop that catches it and continues would never end.

    Raises:
        CancelledError: the task was cancelled.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
