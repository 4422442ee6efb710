"""The output of replicas, line by line: of one replica or all, from the beginning or as it is written."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from paceline.engines.local import folders
from paceline.model.roles import ReplicaId

POLL_SECONDS = 0.2
#: How much of a file is read at once.
CHUNK_BYTES = 1 << 20
#: The longest part of a line that is shown.
LINE_BYTES = 8 << 10
#: An unfinished line that has not grown for this many looks is shown as it is.
_STILL_LOOKS = 5
_LINE_END = re.compile(rb"\r\n?|\n")

#: How far the output of each attempt was read, in its reader's notation.
Positions = Mapping[tuple[ReplicaId, int], str]


@dataclasses.dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a replica's output, without its end."""

    replica: ReplicaId
    attempt: int
    text: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LogSelection:
    """Which output to read.

    Attributes:
        replica: returns whether to read the output of a replica.
        attempt: read only this attempt; None: all.
        tail: of the existing output, read only this many last lines of each attempt.
        since: of the existing output, read only attempts that printed something after this (Unix seconds).
        behind: read only what lies behind these positions, and attempts without a position from their
            beginning; ``tail`` and ``since`` are then ignored. None: nothing was read before.
    """

    replica: Callable[[ReplicaId], bool] = lambda replica: True
    attempt: int | None = None
    tail: int | None = None
    since: float | None = None
    behind: Positions | None = None

    def takes(self, replica: ReplicaId, attempt: int) -> bool:
        """Return whether to read the output of an attempt."""
        return self.replica(replica) and self.attempt in (None, attempt)


ALL = LogSelection()


class Reader(Protocol):
    """A reader of the output of a run's replicas that can continue where it stopped."""

    @property
    def positions(self) -> Positions:
        """How far each attempt was read: up to the last line that was yielded."""

    def fresh(self, *, ended: bool) -> Iterator[LogLine]:
        """Yield the lines written since the last call, attempt after attempt.

        Args:
            ended: no more output will come, so an unfinished last line is yielded, too.
        """


@dataclasses.dataclass(slots=True)
class _Tail:
    """One log file, read on from the last position.

    A line ends where a terminal ends it: at a line feed or a carriage return, as progress bars write. An
    unfinished line is shown when it has not grown for some looks. Only the first bytes of a long line are
    kept; they are shown once.

    Attributes:
        offset: the position behind the last line that was yielded.
    """

    path: Path
    replica: ReplicaId
    attempt: int
    offset: int = 0
    _read: int = 0
    _rest: bytes = b""
    _is_cut: bool = False
    _follows_return: bool = False
    _still_looks: int = 0

    def lines(self, *, ended: bool) -> Iterator[LogLine]:
        with self.path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < self._read:  # A user has emptied it, to have room again.
                self.offset, self._read, self._rest = 0, 0, b""
                self._is_cut = self._follows_return = False
            file.seek(self._read)
            has_grown = False
            while chunk := file.read(CHUNK_BYTES):
                has_grown = True
                yield from self._taken(chunk)
        self._still_looks = 0 if has_grown else self._still_looks + 1
        if self._rest and (ended or self._still_looks >= _STILL_LOOKS):
            yield self._line(b"")

    def _taken(self, chunk: bytes) -> Iterator[LogLine]:
        """Yield the lines that end within the next bytes, and unfinished lines that exceed ``LINE_BYTES``."""
        self._read += len(chunk)
        pieces = chunk.splitlines(keepends=True)
        if self._follows_return and pieces[0] == b"\n":  # The second half of a CR LF.
            pieces = pieces[1:]
            self.offset += 1
        self._follows_return = chunk.endswith(b"\r")
        for piece in pieces:
            if piece.endswith((b"\r", b"\n")):
                if self._is_cut:
                    self._is_cut = False
                    self.offset += len(piece)
                else:
                    yield self._line(piece)
            elif self._is_cut:
                self.offset += len(piece)
            else:
                self._rest += piece
                if len(self._rest) > LINE_BYTES:
                    yield self._line(b"")
                    self._is_cut = True

    def _line(self, piece: bytes) -> LogLine:
        data, self._rest = self._rest + piece, b""
        self.offset += len(data)
        text = data.rstrip(b"\r\n")[: LINE_BYTES + 1]
        shown = text.decode(errors="replace") if len(text) <= LINE_BYTES else _cut(text[:LINE_BYTES])
        return LogLine(self.replica, self.attempt, shown)

    def begin(self, offset: int) -> None:
        """Continue behind a position that ``offset`` had earlier."""
        self.offset = self._read = offset
        with self.path.open("rb") as file:
            begin = max(0, offset - LINE_BYTES)
            file.seek(begin)
            before = file.read(offset - begin)
        self._follows_return = before.endswith(b"\r")
        self._is_cut = len(before) == LINE_BYTES and not (b"\n" in before or b"\r" in before)

    def skip(self, tail: int | None, since: float | None) -> None:
        """Skip the existing output that is not wanted."""
        status = self.path.stat()
        if since is not None and status.st_mtime < since:
            self.offset = self._read = status.st_size
        elif tail is not None:
            self._keep_last(tail)

    def _keep_last(self, count: int) -> None:
        """Begin with the last ``count`` lines."""
        with self.path.open("rb") as file:
            position = file.seek(0, os.SEEK_END)
            if position and count:
                file.seek(position - 1)
                count += file.read(1) in (b"\n", b"\r")
            while position > 0 and count > 0:
                size = min(CHUNK_BYTES, position)
                position -= size
                file.seek(position)
                chunk = file.read(size)
                if position and chunk.startswith(b"\n"):
                    file.seek(position - 1)
                    if file.read(1) == b"\r":  # CR LF is one line end.
                        position -= 1
                        chunk = b"\r" + chunk
                ends = [end.end() for end in _LINE_END.finditer(chunk)]
                if len(ends) >= count:
                    position += ends[-count]
                count -= min(count, len(ends))
        self.offset = self._read = position


def _cut(text: bytes) -> str:
    """Return the beginning of a line with a mark that it continues; no character is cut in two."""
    return text.decode(errors="ignore") + "…"


class FolderReader:
    """Reads the log files in the folder of a run; positions are bytes.

    Args:
        folder: the run's folder.
        wanted: which output to read.
    """

    def __init__(self, folder: folders.RunFolder, wanted: LogSelection) -> None:
        self._folder, self._wanted = folder, wanted
        self._tails: dict[tuple[ReplicaId, int], _Tail] = {}
        self._is_first = wanted.behind is None

    @property
    def positions(self) -> Positions:
        """How far each attempt was read."""
        return {
            **(self._wanted.behind or {}),
            **{each: str(tail.offset) for each, tail in self._tails.items()},
        }

    def fresh(self, *, ended: bool) -> Iterator[LogLine]:
        """Yield the lines written since the last call (see `Reader`)."""
        found = [each for each in _files(self._folder) if self._wanted.takes(*each[1:])]
        for path, replica, attempt in found:
            if (replica, attempt) not in self._tails:
                self._tails[replica, attempt] = self._begun(path, replica, attempt)
        self._is_first = False
        for _, replica, attempt in found:
            with contextlib.suppress(FileNotFoundError):  # The job was deleted meanwhile.
                yield from self._tails[replica, attempt].lines(ended=ended)

    def _begun(self, path: Path, replica: ReplicaId, attempt: int) -> _Tail:
        tail = _Tail(path, replica, attempt)
        if self._is_first:
            tail.skip(self._wanted.tail, self._wanted.since)
        position = (self._wanted.behind or {}).get((replica, attempt))
        if position is not None:
            # A position that is not a number is from another source, such as the pod, whose reader has read
            # everything.
            size = path.stat().st_size
            tail.begin(min(int(position), size) if position.isdecimal() else size)
        return tail


def lines(
    reader: Reader, *, follow: Callable[[], bool] | None = None, pause_seconds: float = POLL_SECONDS
) -> Iterator[LogLine]:
    """Yield the lines of a run's replicas, attempt after attempt.

    Args:
        reader: the reader of the run.
        follow: wait for more output as long as this returns True; None: do not wait.
        pause_seconds: how long to wait before the next look.
    """
    while True:
        going_on = follow is not None and follow()
        yield from reader.fresh(ended=not going_on)
        if not going_on:
            return
        time.sleep(pause_seconds)


def _files(folder: folders.RunFolder) -> list[tuple[Path, ReplicaId, int]]:
    found = []
    for path in folder.logs.glob("*.log"):
        replica, _, attempt = path.stem.rpartition(".")
        with contextlib.suppress(ValueError):  # Users and scripts may keep files of their own there.
            found.append((path, ReplicaId.parse(replica), int(attempt)))
    return sorted(found, key=lambda item: (item[1], item[2]))
