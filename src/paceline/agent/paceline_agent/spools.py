"""The file of lines in which the agent writes all that it sees."""

import json
import os
from typing import Any, Dict, List

SEEN_TYPES = ("instrumentation", "fact", "cure")  # about the script; they stay true while it runs
MOST_SEEN = 80  # messages and facts seen about a script


class Spool:
    """Appends JSON lines; after a line that was cut off, the next one begins on a new line.

    Attributes:
        error: why the last line could not be written.
        seen: the lines about the script itself, which stay true as long as it runs.
    """

    def __init__(self, path: str) -> None:
        self._path, self._descriptor, self._torn = path, -1, False
        self.error = ""
        self.seen: List[bytes] = []

    def append(self, line: Dict[str, Any]) -> bool:
        """Write one line with one call; return False if it could not be written, and set ``error``."""
        data = b"\n" * self._torn + json.dumps(line, allow_nan=False).encode("ascii") + b"\n"
        try:
            if self._descriptor < 0:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
                self._descriptor = os.open(self._path, flags, 0o644)
            written = os.write(self._descriptor, data)
        except OSError as error:
            self.error = str(error)
            return False
        self._torn = written < len(data) and (written > 0 or self._torn)
        if written < len(data):
            self.error = "the disk is full"
        elif line["type"] in SEEN_TYPES and len(self.seen) < MOST_SEEN:
            self.seen.append(data.lstrip(b"\n"))
        return written == len(data)
