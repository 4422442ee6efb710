"""The output of pods, appended to files as a local run has them, so that it outlives the pods.

Beside each file lies how far it goes, in time and in bytes. That is written after the lines; so whoever comes
next cuts off what it does not vouch for, and no line is there twice or lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from paceline.engines.kubernetes.clusters import Line

#: A file that grows beyond this loses its first half.
MAX_BYTES = 32 << 20
#: Lines are asked for at most so many at once.
MAX_LINES = 20_000
#: So much of the end of an output says why a command failed.
TAIL_BYTES = 1 << 16


def tail(path: Path) -> list[str]:
    """Return the last lines of a file, at most ``TAIL_BYTES``; of one that cannot be read none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            return file.read(TAIL_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return []


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

    def append(self, lines: Sequence[Line]) -> None:
        """Add the lines that are newer than those that are there."""
        new = [line for line in lines if line.at > self.until]
        if not new:
            return
        left_out = self.until and len(lines) >= MAX_LINES and len(new) == len(lines)
        texts = ["paceline: lines are missing here: too many at once"] * bool(left_out)
        data = "".join(text + "\n" for text in [*texts, *(line.text for line in new)])
        with self._path.open("ab") as file:
            file.write(data.encode(errors="replace"))
            size = file.tell()
        if size > MAX_BYTES:
            size = self._halve()
        self.until = new[-1].at
        temporary = self._mark.with_suffix(".tmp")
        temporary.write_text(json.dumps({"until": self.until, "bytes": size}))
        os.replace(temporary, self._mark)

    def _halve(self) -> int:
        """Keep the second half, and say so; return how many bytes that are."""
        kept = self._path.read_bytes()[-MAX_BYTES // 2 :]
        kept = b"paceline: earlier lines were left out\n" + kept[kept.find(b"\n") + 1 :]
        temporary = self._path.with_suffix(".tmp")
        temporary.write_bytes(kept)
        # Until the mark is written too, the old one vouches for more bytes than there are.
        os.replace(temporary, self._path)
        return len(kept)
