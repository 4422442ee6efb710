"""Lines for the agent: appended to the file that it reads, each in one write, and never in the script's way."""

from __future__ import absolute_import

import json
import math
import os
import time

if False:  # for type checkers
    from typing import Any, Dict, List, Mapping, Optional

#: So many lines that cannot be written end it: the disk is full, or the folder is gone.
MOST_FAILURES = 5
MOST_NOTES = 20
_NOTE_CHARACTERS = 600


class Reporter(object):
    """Appends reports of this process to the replica's report file.

    Args:
        path: the file.
    """

    def __init__(self, path):
        # type: (str) -> None
        self._path = path
        self._failures = 0
        self._notes = []  # type: List[str]

    def append(self, kind, fields):
        # type: (str, Mapping[str, Any]) -> bool
        """Append a line of a kind; return whether it was written. What is no finite number is told as null."""
        if self._failures >= MOST_FAILURES:
            return False
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

    def note(self, text):
        # type: (str) -> None
        """Say something about the instrumentation itself, once, and not too much in all."""
        text = text[-_NOTE_CHARACTERS:]
        if text not in self._notes and len(self._notes) < MOST_NOTES:
            self._notes.append(text)
            self.append("instrumentation", {"notes": [text]})


def _finite(value):
    # type: (Any) -> Any
    return None if isinstance(value, float) and not math.isfinite(value) else value
