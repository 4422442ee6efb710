"""Says what a command does that its exit code does not show: it floods its log, or outlives its trainer.

It runs under Python 3.6 and later, hence the old-fashioned spelling.
"""

import os
import stat
import time
from typing import Any, Dict, List, Optional

#: Output that is worth a word: so much of it, and so much a second since the command began.
FLOOD_BYTES = 50 << 20
FLOOD_BYTES_PER_SECOND = 256 << 10
#: A command may go on for so long after its trainer: to save, to evaluate, to clean up.
OUTLIVING_SECONDS = 60.0
_STDOUT = 1


class Watch:
    """Looks at a command now and then.

    Args:
        reports: the report file; the process that trains has its number in a file beside it.
        began: when the command began, by the monotonic clock.
        output: the descriptor of what the command prints to.
    """

    def __init__(self, reports: str, began: float, output: int = _STDOUT) -> None:
        self._owner_file = reports + ".owner"
        self._began = began
        self._output = output
        self._has_flooded = False
        self._trainer = 0
        self._ended_at = None  # type: Optional[float]

    def look(self, now: float) -> List[Dict[str, Any]]:
        """Return lines for the spool on what is new; each is said once."""
        found = []
        for kind, message in (("output", self._flood(now)), ("outlived", self._outlived(now))):
            if message is not None:
                found.append({"type": kind, "at": time.time(), "message": message})
        return found

    def _flood(self, now: float) -> Optional[str]:
        """Return how much was printed if that is a flood.

        Only a file has a size. In a container output is a pipe, and the operator judges what it reads of it.
        """
        status = os.fstat(self._output)
        seconds = now - self._began
        if self._has_flooded or not stat.S_ISREG(status.st_mode) or status.st_size < FLOOD_BYTES:
            return None
        if status.st_size < FLOOD_BYTES_PER_SECOND * seconds:
            return None
        self._has_flooded = True
        return "%.0f MiB of output in %.0f s" % (status.st_size / 1048576.0, seconds)

    def _outlived(self, now: float) -> Optional[str]:
        """Return that the process that trained ended some time ago."""
        trainer = self._owner()
        if trainer != self._trainer:
            self._trainer, self._ended_at = trainer, None
        if not trainer or is_alive(trainer):
            return None
        if self._ended_at is None:
            self._ended_at = now
        if now - self._ended_at < OUTLIVING_SECONDS:
            return None
        self._ended_at = float("inf")  # Said.
        return "process %d, which trained, has ended; the command goes on" % trainer

    def _owner(self) -> int:
        try:
            with open(self._owner_file) as file:
                return int(file.read(20) or 0)
        except (OSError, ValueError):
            return 0


def is_alive(pid: int, proc: str = "/proc") -> bool:
    """Return whether a process runs: one that has ended may wait for its parent to ask for its status."""
    try:
        with open(os.path.join(proc, str(pid), "stat"), "rb") as file:
            state = file.read().rpartition(b") ")[2][:1]
    except OSError:
        return False
    return state not in (b"Z", b"X", b"")
