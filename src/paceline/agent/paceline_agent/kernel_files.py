"""Files of the kernel that are read again and again, and the numbers in them.

Descriptors stay open between samples: opening a file below ``/proc`` costs as much as reading it.
"""

import os
import resource
from typing import Dict, Optional

KEPT_FILES = 400


class KeptFiles:
    """Reads files repeatedly through descriptors that stay open; one that fails is closed and forgotten."""

    def __init__(self) -> None:
        self._descriptors: Dict[str, int] = {}
        self._room = min(KEPT_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)

    def read(self, path: str) -> Optional[str]:
        """Return the whole text, or None if it cannot be read (any more)."""
        descriptor = self._descriptors.get(path)
        try:
            if descriptor is None:
                descriptor = self._descriptors[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            chunks = [os.pread(descriptor, 1 << 16, 0)]
            length = len(chunks[0])
            while chunks[-1]:
                chunks.append(os.pread(descriptor, 1 << 16, length))
                length += len(chunks[-1])
        except OSError:
            self.forget(path)
            return None
        if len(self._descriptors) > self._room:
            self.forget(path)
        return b"".join(chunks).decode("utf-8", "surrogateescape")

    def forget(self, path: str) -> None:
        """Close the file if it is open."""
        descriptor = self._descriptors.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)


def parse_integer(text: str) -> Optional[int]:
    """Parse one integer; None for anything else, including "max"."""
    try:
        value = int(text)
    except ValueError:
        return None
    return value if abs(value) < 2**64 else None


def parse_keyed(text: str, key: str) -> Optional[int]:
    """Read one key of a flat-keyed file: cpu.stat, memory.stat, memory.events (cgroup-v2.rst, cgroup-v1/)."""
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == key:
            return parse_integer(words[1])
    return None
