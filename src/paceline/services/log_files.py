"""The output of pods, appended to files as a local run has them, so that it outlives the pods.

Beside each file lies how far it goes, in time and in bytes. That is written after the lines; so the next
process cuts off what it does not vouch for, and no line is there twice or lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from paceline.engines.kubernetes import times
from paceline.engines.kubernetes.clusters import OutputLine

#: A file that grows beyond this loses its first half.
MAX_BYTES = 32 << 20
#: Lines are asked for at most so many at once.
MAX_LINES = 20_000
#: And of these so many bytes: 16 replicas are read at once, by an operator that has 500 MiB.
MAX_LINES_BYTES = 4 << 20
#: So much of the end of an output says why a command failed.
TAIL_BYTES = 1 << 16
_MISSING = b"paceline: lines are missing here: too many at once\n"


def tail(path: Path) -> list[str]:
    """Return the last lines of a file, at most ``TAIL_BYTES``; of one that cannot be read none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            return file.read(TAIL_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return []


class OutputPiece(NamedTuple):
    """What was new at a look: so many bytes, and all that was written between two moments, in Unix seconds.

    The first is when the last line before was written, or, where lines are missing, the first of these.
    """

    size_bytes: int
    since: float
    until: float


class LogFile:
    """The output of one attempt.

    Args:
        path: of its lines (`folders.RunFolder.log`).

    Raises:
        OSError: it cannot be read or written; so does every method.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark = path.with_suffix(".mark")
        #: When the last line was written, as the API writes times; empty: there is none.
        self.until = ""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            mark = json.loads(self._mark.read_text())
            self.until = str(mark["until"])
            if path.stat().st_size > int(mark["bytes"]):
                os.truncate(path, int(mark["bytes"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            self.until = ""
            path.write_bytes(b"")

    def append(self, lines: Sequence[OutputLine], *, is_over: bool = False) -> OutputPiece | None:
        """Add the lines that are newer than those that are there.

        Args:
            lines: what was read, from before the last line that is there unless there was too much.
            is_over: nothing more will come, so a line that has not ended is added, too.

        Returns:
            What was new; None: no line was read, which says nothing.
        """
        if lines and not (lines[-1].has_ended or is_over):
            lines = lines[:-1]
        if not lines:
            return None
        new = [line for line in lines if line.at > self.until]
        if not (new or self.until):
            return None
        # There were too many at once, or the kubelet has begun a new file meanwhile.
        is_torn = not self.until or len(new) == len(lines)
        since = times.seconds(new[0].at if is_torn else self.until)
        if not new:
            return OutputPiece(0, since, since)
        data = "".join(f"{line.text}\n" for line in new).encode(errors="replace")
        with self._path.open("ab") as file:
            file.write((_MISSING if is_torn and self.until else b"") + data)
            size = file.tell()
        if size > MAX_BYTES:
            size = self._halve()
        self.until = new[-1].at
        temporary = self._mark.with_suffix(".tmp")
        temporary.write_text(json.dumps({"until": self.until, "bytes": size}))
        os.replace(temporary, self._mark)
        return OutputPiece(len(data), since, times.seconds(self.until))

    def _halve(self) -> int:
        """Keep the second half, and say so; return how many bytes that are."""
        kept = self._path.read_bytes()[-MAX_BYTES // 2 :]
        kept = b"paceline: earlier lines were left out\n" + kept[kept.find(b"\n") + 1 :]
        temporary = self._path.with_suffix(".tmp")
        temporary.write_bytes(kept)
        # Until the mark is written too, the old one vouches for more bytes than there are.
        os.replace(temporary, self._path)
        return len(kept)
