"""Reads what users have written in a process of its own, so that it can be given up.

Readers of foreign text are linear and bounded. What one of them still does not bound costs its process, and
not the loop of an operator or the memory of a server: a process that takes too long, or too much, is killed,
and the next text gets another one.
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
#: The API server takes JSON of 10 000 levels, and one such resource must not keep others from being read.
MOST_LEVELS = 50_000

Given = TypeVar("Given")
Found = TypeVar("Found")


class BoundedReader(Generic[Given, Found]):
    """A reader that can be given up; it may be asked from several threads, and answers one at a time.

    Args:
        read: what reads; a function of a module, for another process has to find it.
        seconds: how long it may take.
        memory_bytes: how much address space its process may have.
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
        """Return what the reader makes of something.

        Raises:
            InvalidInput: it was given up.
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
        # Nothing of this process is in the other one: not its threads, not its connections.
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
        """End its process; the next text gets another one."""
        with self._turn:
            self._end()


def _serve(line: Connection, read: Callable[[Any], Any], memory_bytes: int) -> None:
    """Read what comes, until nothing more does."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    sys.setrecursionlimit(MOST_LEVELS)
    # Who asks may be killed at any moment.
    with contextlib.suppress(EOFError, ConnectionError, KeyboardInterrupt):
        while True:
            given = line.recv()
            try:
                answer = True, read(given)
            except InvalidInput as error:
                answer = False, error
            line.send(answer)
