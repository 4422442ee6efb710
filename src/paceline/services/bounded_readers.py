"""Runs readers of user-written text in a separate process that can be killed.

Readers of foreign text are meant to be linear and bounded. If one of them is not, only its process suffers,
not the event loop of an operator or the memory of a server: a process that takes too much time or memory is
killed, and the next text gets a new process.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import resource
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from paceline.errors import InvalidInput

SECONDS = 30.0
MEMORY_BYTES = 512 << 20
#: The API server accepts JSON nested 10 000 levels deep, and one deep resource must not block the others.
MOST_LEVELS = 50_000

Given = TypeVar("Given")
Found = TypeVar("Found")


class BoundedReader(Generic[Given, Found]):
    """A reader with a limit of time and memory; several threads may call it, and it serves one at a time.

    Args:
        read: the function that reads. It must belong to a module, because another process imports it.
        seconds: how long one call may take.
        memory_bytes: how much address space the reader's process may have.
    """

    def __init__(
        self, read: Callable[[Given], Found], *, seconds: float = SECONDS, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        self._read = read
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._turn = threading.Lock()
        self._process: BaseProcess | None = None
        self._line: Connection | None = None

    def read(self, given: Given) -> Found:
        """Return what the reader makes of a text.

        Raises:
            InvalidInput: the reader rejects the text, or exceeds its time or memory.
        """
        with self._turn:
            line = self._line if self._process is not None and self._process.is_alive() else None
            line = line or self._started()
            why = f"it cannot be read in {self._seconds:g} s"
            try:
                line.send(given)
                if line.poll(self._seconds):
                    is_found, found = line.recv()
                    if is_found:
                        return found  # type: ignore[no-any-return]
                    raise found
            except (EOFError, OSError, MemoryError, RecursionError):
                why = f"to read it takes more than {self._memory_bytes >> 20} MiB"
            self._end()
        raise InvalidInput(why, "it is larger, or deeper, than any job: look at what it repeats")

    def _started(self) -> Connection:
        self._end()
        # A spawned process inherits neither threads nor connections from this one.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_serve, args=(theirs, self._read, self._memory_bytes), name="paceline-reader", daemon=True
        )
        process.start()
        theirs.close()
        self._process, self._line = process, ours
        return ours

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
        if self._line is not None:
            self._line.close()
        self._process = self._line = None

    def close(self) -> None:
        """End the reader's process; the next text gets a new one."""
        with self._turn:
            self._end()


def _serve(line: Connection, read: Callable[[Any], Any], memory_bytes: int) -> None:
    """Answer requests until the connection closes."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    sys.setrecursionlimit(MOST_LEVELS)
    # The calling process may be killed at any moment.
    with contextlib.suppress(EOFError, ConnectionError, KeyboardInterrupt):
        while True:
            given = line.recv()
            try:
                answer = True, read(given)
            except InvalidInput as error:
                answer = False, error
            line.send(answer)
