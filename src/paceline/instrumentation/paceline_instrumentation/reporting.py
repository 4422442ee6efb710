"""Lines for the agent: appended to the file that it reads, each in one write, never in the script's way."""

from __future__ import absolute_import

import atexit
import json
import math
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional

#: So many lines that cannot be written end it: the disk is full, or the folder is gone.
MOST_FAILURES = 5
MOST_MESSAGES = 20
#: Of a number: what changes by less is no news.
_NEWS = 0.25
#: Within that a process that has made the file of an owner has written its number into it.
_OWNER_SECONDS = 10.0
#: Of the beginning of a message, and of its end.
_HALF_CHARACTERS = 400


class Reporter(object):
    """Appends reports of this process to the replica's report file.

    Of the processes of a replica that train, one reports: the first. What is forked from it does not.

    Args:
        path: the file.
    """

    def __init__(self, path):
        # type: (str) -> None
        self._path = path
        self._failures = 0
        self._said = []  # type: List[str]
        self._facts = {}  # type: Dict[str, Any]
        self._owner = None  # type: Optional[int]
        self._waiting = []  # type: List[Callable[[], None]]

    def append(self, kind, fields):
        # type: (str, Mapping[str, Any]) -> bool
        """Append a line of a kind; return whether it was written. No finite number is told as null."""
        if self._failures >= MOST_FAILURES:
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
            return False
        self._failures = 0
        return True

    def say(self, message):
        # type: (str) -> None
        """Say something about what is seen and what is not: once, and not too much in all."""
        if len(message) > 2 * _HALF_CHARACTERS:
            message = message[:_HALF_CHARACTERS] + " ... " + message[-_HALF_CHARACTERS:]
        if message not in self._said and len(self._said) < MOST_MESSAGES:
            self._said.append(message)
            self.append("instrumentation", {"message": message})

    def before_steps(self, action):
        # type: (Callable[[], None]) -> None
        """Have an action append what it has gathered, before the next report of steps or at the end."""
        if not self._waiting:
            atexit.register(self.append_waiting)
        self._waiting.append(action)

    def append_waiting(self):
        # type: () -> None
        """Append what actions have gathered."""
        while self._waiting:
            self._waiting.pop(0)()

    def state(self, name, value):
        # type: (str, Any) -> None
        """Report a fact of the script, unless it was reported before with about that value."""
        if not _is_about(self._facts.get(name), value):
            self._facts[name] = value
            self.append("fact", {"name": name, "value": value})

    def owns(self):
        # type: () -> bool
        """Whether this process reports the steps of its replica: the first that trains, while it lives."""
        process = os.getpid()
        if self._owner is None:
            self._owner = process if _take(self._path + ".owner", process) else 0
        return self._owner == process


def _take(path, process):
    # type: (str, int) -> bool
    """Become the owner that a file names, unless another living process is; return whether that was done."""
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
        except OSError:  # No folder to write to, so nothing will be reported.
            return False
        with os.fdopen(handle, "w") as file:
            file.write(str(process))
        return True
    return False


def _is_held(path):
    # type: (str) -> bool
    """Whether the owner that a file names lives; a file without a number is being made, or was left so."""
    try:
        with open(path) as file:
            text = file.read(20)
        if not text:
            return time.time() - os.stat(path).st_mtime < _OWNER_SECONDS
        os.kill(int(text), 0)
        return True
    except PermissionError:  # It lives, and belongs to another user.
        return True
    except (OSError, ValueError, OverflowError):  # It has ended, or the file is none of ours.
        return False


def _is_about(before, value):
    # type: (Any, Any) -> bool
    """Whether a value is the one before; of numbers whether they differ by less than a quarter."""
    if isinstance(value, float) and before is not None:
        return bool(abs(value - before) <= _NEWS * max(abs(before), abs(value)))
    return bool(before == value)


def _finite(value):
    # type: (Any) -> Any
    return None if isinstance(value, float) and not math.isfinite(value) else value
