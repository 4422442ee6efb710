"""Appends lines to the file that the agent reads: one write each, never failing the script."""

from __future__ import absolute_import

import atexit
import json
import math
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional

clock = time.monotonic
#: After this many failed writes in a row, one is tried only every so many seconds: the disk is full, or the
#: folder is gone.
MOST_FAILURES = 5
RETRY_SECONDS = 60.0
MOST_MESSAGES = 20
#: The relative change below which a number is not reported again.
_NEWS = 0.25
#: Within this time, a process that has created an owner file writes its number into it.
_OWNER_SECONDS = 10.0
#: How much is kept of a long message's beginning, and of its end.
_HALF_CHARACTERS = 400


class Reporter(object):
    """Appends reports of this process to the replica's report file.

    Of a replica's processes that train, only the first reports steps; processes forked from it do not.

    Args:
        path: the file.
    """

    def __init__(self, path):
        # type: (str) -> None
        self._path = path
        self._failures = 0
        self._failed_at = 0.0
        self._said = []  # type: List[str]
        self._facts = {}  # type: Dict[str, Any]
        self._owner = None  # type: Optional[int]
        self._waiting = []  # type: List[Callable[[], None]]

    def append(self, kind, fields):
        # type: (str, Mapping[str, Any]) -> bool
        """Append a line of a kind; return whether it was written. Numbers that are not finite become null."""
        if self._failures >= MOST_FAILURES and clock() - self._failed_at < RETRY_SECONDS:
            return False
        if kind == "step":
            self.append_waiting()
        line = {"type": kind, "at": time.time(), "source": "instrumentation"}  # type: Dict[str, Any]
        line.update((name, _finite(value)) for name, value in fields.items())
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                os.write(handle, (json.dumps(line) + "\n").encode("utf-8"))
            finally:
                os.close(handle)
        except OSError:
            self._failures += 1
            self._failed_at = clock()
            return False
        self._failures = 0
        return True

    def say(self, message):
        # type: (str) -> None
        """Report a message on what is seen or not seen: each message once, and a limited number in all."""
        if len(message) > 2 * _HALF_CHARACTERS:
            message = message[:_HALF_CHARACTERS] + " ... " + message[-_HALF_CHARACTERS:]
        if message not in self._said and len(self._said) < MOST_MESSAGES:
            self._said.append(message)
            self.append("instrumentation", {"message": message})

    def before_steps(self, action):
        # type: (Callable[[], None]) -> None
        """Run an action before the next step report, or at exit, to append what it has gathered."""
        if not self._waiting:
            atexit.register(self.append_waiting)
        self._waiting.append(action)

    def append_waiting(self):
        # type: () -> None
        """Run the waiting actions."""
        while self._waiting:
            self._waiting.pop(0)()

    def state(self, name, value):
        # type: (str, Any) -> None
        """Report a fact of the script, unless it was already reported with about the same value."""
        is_news = not _is_about(self._facts.get(name), value)
        if is_news and self.append("fact", {"name": name, "value": value}):
            self._facts[name] = value

    def owns(self):
        # type: () -> bool
        """Return whether this process reports its replica's steps: the first that trains, while it lives."""
        process = os.getpid()
        if self._owner is None:
            self._owner = process if _take(self._path + ".owner", process) else 0
        return self._owner == process


def _take(path, process):
    # type: (str, int) -> bool
    """Become the owner that a file names, unless another living process is; return whether it worked."""
    for _ in range(2):
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            if _is_held(path):
                return False
            try:
                os.unlink(path)
            except OSError:  # Another process was faster, or the folder is read-only.
                return False
            continue
        except OSError:  # There is no folder to write to, so nothing will be reported.
            return False
        with os.fdopen(handle, "w") as file:
            file.write(str(process))
        return True
    return False


def _is_held(path):
    # type: (str) -> bool
    """Return whether the owner that a file names is alive; an empty file counts as held for a short time."""
    try:
        with open(path) as file:
            text = file.read(20)
        if not text:
            return time.time() - os.stat(path).st_mtime < _OWNER_SECONDS
        os.kill(int(text), 0)
        return True
    except PermissionError:  # It is alive, and belongs to another user.
        return True
    except (OSError, ValueError, OverflowError):  # It has ended, or the file is not ours.
        return False


def _is_about(before, value):
    # type: (Any, Any) -> bool
    """Return whether a value equals the one before; floats are equal if they differ by at most a quarter."""
    if isinstance(value, float) and before is not None:
        return bool(abs(value - before) <= _NEWS * max(abs(before), abs(value)))
    return bool(before == value)


def _finite(value):
    # type: (Any) -> Any
    return None if isinstance(value, float) and not math.isfinite(value) else value
