"""Copies the output of pods to files laid out as in a local run, so that the output outlives the pods.

A mark beside each file records how far the file goes, in time and in bytes. The mark is written after the
lines. The next process cuts off any bytes beyond the mark, so no line is duplicated or lost.
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
#: The most lines requested at once.
MAX_LINES = 20_000
#: The most bytes of these lines: 16 replicas are read at once, by an operator with 500 MiB of memory.
MAX_LINES_BYTES = 4 << 20
#: This much of the end of an output is enough to say why a command failed.
TAIL_BYTES = 1 << 16
_MISSING = b"paceline: lines are missing here: too many at once\n"


def tail(path: Path) -> list[str]:
    """Return the last lines of a file, at most ``TAIL_BYTES``; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            return file.read(TAIL_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return []


class OutputPiece(NamedTuple):
    """The new output of one look: its size, and when its writing began and ended (Unix seconds).

    ``since`` is when the line before it was written or, where lines are missing, when its own first line was.
    """

    size_bytes: int
    since: float
    until: float


class LogFile:
    """The output of one attempt.

    Args:
        path: the file with its lines (`folders.RunFolder.log`).

    Raises:
        OSError: the file cannot be read or written; every method may raise this.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark = path.with_suffix(".mark")
        #: When the last line was written, in the API's notation; empty if there is no line.
        self.until = ""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            mark = json.loads(self._mark.read_text())
            self.until = str(mark["until"])
            size, halved = path.stat().st_size, int(mark.get("halved", -1))
            if size == halved:
                self._write_mark(size)
            elif size > int(mark["bytes"]):
                os.truncate(path, int(mark["bytes"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            self.until = ""
            path.write_bytes(b"")

    def append(self, lines: Sequence[OutputLine], *, is_over: bool = False) -> OutputPiece | None:
        """Add the lines that are newer than those in the file.

        Args:
            lines: the lines read. They begin before the last line in the file, unless there were too many.
            is_over: no more output will come, so an unfinished last line is added, too.

        Returns:
            What was new; None if no line was read, which says nothing.
        """
        if lines and not (lines[-1].has_ended or is_over):
            lines = lines[:-1]
        if not lines:
            return None
        new = [line for line in lines if line.at > self.until]
        if not (new or self.until):
            return None
        # Either there were too many lines at once, or the kubelet has begun a new file meanwhile.
        is_torn = not self.until or len(new) == len(lines)
        since = times.seconds(new[0].at if is_torn else self.until)
        if not new:
            return OutputPiece(0, since, since)
        data = "".join(f"{line.text}\n" for line in new).encode(errors="replace")
        with self._path.open("ab") as file:
            file.write((_MISSING if is_torn and self.until else b"") + data)
            size = file.tell()
        self.until = new[-1].at
        if size > MAX_BYTES:
            self._halve(size)
        else:
            self._write_mark(size)
        return OutputPiece(len(data), since, times.seconds(self.until))

    def _write_mark(self, size: int, halved: int | None = None) -> None:
        """Record up to which line the file is complete.

        Args:
            size: the bytes of the file up to the end of that line.
            halved: the bytes of the file once its older half has been cut off.
        """
        mark = {"until": self.until, "bytes": size, **({} if halved is None else {"halved": halved})}
        temporary = self._mark.with_suffix(".tmp")
        temporary.write_text(json.dumps(mark))
        os.replace(temporary, self._mark)

    def _halve(self, size: int) -> None:
        """Keep the second half of a file of this size, with a notice at its top."""
        kept = self._path.read_bytes()[-MAX_BYTES // 2 :]
        kept = b"paceline: earlier lines were left out\n" + kept[kept.find(b"\n") + 1 :]
        temporary = self._path.with_suffix(".half")
        temporary.write_bytes(kept)
        # A process that is killed in between leaves the file as it was or halved: the mark holds for both.
        self._write_mark(size, len(kept))
        os.replace(temporary, self._path)
        self._write_mark(len(kept))
