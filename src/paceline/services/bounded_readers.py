"""Runs readers of user-written text in a separate process that can be killed.

Readers of foreign text are meant to be linear and bounded. If one of them is not, only its process suffers,
not the event loop of an operator or the memory of a server: a process that takes too much CPU time or memory
is killed, and the next text gets a new process. The process's own CPU time counts, without that of its start:
on a busy machine, a text is no worse.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import resource
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

import psutil

from paceline.errors import InvalidInput

SECONDS = 30.0
#: A process that neither works nor answers is given up after this many times its CPU time.
MOST_WAITS = 20.0
#: How long a process may take to start, and how often its CPU time is looked at.
START_SECONDS, LOOK_SECONDS = 600.0, 0.1
MEMORY_BYTES = 512 << 20
#: The exit code of a process whose reader came to the limit of memory or of depth.
_TOO_LARGE = 70
#: The API server accepts JSON nested 10 000 levels deep, and one deep resource must not block the others.
MOST_LEVELS = 50_000

_TOO_MUCH = "it is larger, or deeper, than any job: look at what it repeats"
_ENDED = "the log of this process may say why; if the text is a job like others, please report this"

Given = TypeVar("Given")
Found = TypeVar("Found")


class BoundedReader(Generic[Given, Found]):
    """A reader with a limit of time and memory; several threads may call it, and it serves one at a time.

    Args:
        read: the function that reads. It must belong to a module, because another process imports it.
        seconds: the CPU time that one call may take.
        most_seconds: how long one call may take by the clock; None: `MOST_WAITS` times as long.
        memory_bytes: how much address space the reader's process may have.
    """

    def __init__(
        self,
        read: Callable[[Given], Found],
        *,
        seconds: float = SECONDS,
        most_seconds: float | None = None,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._read = read
        self._seconds = seconds
        self._most_seconds = MOST_WAITS * seconds if most_seconds is None else most_seconds
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
            too_large = f"to read it takes more than {self._memory_bytes >> 20} MiB"
            why, hint = f"it cannot be read in {self._seconds:g} s", _TOO_MUCH
            try:
                line = self._line if self._process is not None and self._process.is_alive() else None
                line = line or self._started()
                line.send(given)
                if self._answers(line):
                    is_found, found = line.recv()
                    if is_found:
                        return found  # type: ignore[no-any-return]
                    raise found
            except (MemoryError, RecursionError):
                why = too_large
            except (EOFError, OSError, psutil.NoSuchProcess):
                code = self._exit_code()
                if code == _TOO_LARGE:
                    why = too_large
                else:
                    why, hint = f"the process that read it has ended with exit code {code}", _ENDED
            self._end()
        raise InvalidInput(why, hint)

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
        if not ours.poll(START_SECONDS):
            self._end()
            raise InvalidInput(f"its reader does not start within {START_SECONDS:g} s", "try again later")
        ours.recv()
        return ours

    def _answers(self, line: Connection) -> bool:
        """Wait for an answer; return whether it came, or the process ended, within its time."""
        assert self._process is not None, "it was started"
        process = psutil.Process(self._process.pid)
        last_cpu_seconds = _cpu_seconds(process) + self._seconds
        last = time.monotonic() + self._most_seconds
        while not line.poll(LOOK_SECONDS):
            if _cpu_seconds(process) >= last_cpu_seconds or time.monotonic() >= last:
                return False
        return True

    def _exit_code(self) -> int | None:
        """Return the exit code of a process that is about to end; it is negative for a signal."""
        if self._process is None:
            return None
        self._process.join(START_SECONDS)
        return self._process.exitcode

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


def _cpu_seconds(process: psutil.Process) -> float:
    """Return the CPU time that a process has used.

    Raises:
        psutil.NoSuchProcess: it has ended.
    """
    times = process.cpu_times()
    return float(times.user + times.system)


def _serve(line: Connection, read: Callable[[Any], Any], memory_bytes: int) -> None:
    """Say that the process has started, and answer requests until the connection closes."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    sys.setrecursionlimit(MOST_LEVELS)
    # The calling process may be killed at any moment.
    with contextlib.suppress(EOFError, ConnectionError, KeyboardInterrupt):
        line.send(None)
        while True:
            given = line.recv()
            try:
                answer = True, read(given)
            except InvalidInput as error:
                answer = False, error
            except (MemoryError, RecursionError):
                sys.exit(_TOO_LARGE)
            line.send(answer)
