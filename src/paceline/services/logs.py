"""The output of replicas, line by line, of one or all, from the beginning or as it comes."""

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
#: So much is shown of a line.
LINE_BYTES = 8 << 10
#: A line without an end that has not grown for so many looks is shown as it is.
_STILL_LOOKS = 5
_LINE_END = re.compile(rb"\r\n?|\n")

#: How far the output of attempts was read, in the notation of its reader.
Positions = Mapping[tuple[ReplicaId, int], str]


@dataclasses.dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a replica's output, without its end."""

    replica: ReplicaId
    attempt: int
    text: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LogSelection:
    """Which output is to be read.

    Attributes:
        replica: says of a replica whether its output is.
        attempt: only this one; None: all.
        tail: of what is there already, only the last so many lines of each attempt.
        since: of what is there already, only attempts that printed something after this (Unix seconds).
        behind: only what lies behind these positions, and attempts without one from their beginning; then
            ``tail`` and ``since`` say nothing. None: nothing was read before.
    """

    replica: Callable[[ReplicaId], bool] = lambda replica: True
    attempt: int | None = None
    tail: int | None = None
    since: float | None = None
    behind: Positions | None = None

    def takes(self, replica: ReplicaId, attempt: int) -> bool:
        """Whether the output of an attempt is to be read."""
        return self.replica(replica) and self.attempt in (None, attempt)


ALL = LogSelection()


class Reader(Protocol):
    """Reads the output of a run's replicas, and reads on."""

    @property
    def positions(self) -> Positions:
        """Return how far each attempt was read: up to the last line that was yielded."""

    def fresh(self, *, ended: bool) -> Iterator[LogLine]:
        """Yield what has come since, attempt after attempt.

        Args:
            ended: nothing more will come, so a line that has no end yet is yielded, too.
        """


@dataclasses.dataclass(slots=True)
class _Tail:
    """One log file, read on from where we stopped.

    A line ends as a terminal shows it: at a line feed or a carriage return, such as a bar of progress writes.
    One without an end is shown when it has not grown for some looks. Of a long line the first bytes are all
    that is kept, shown and read once.

    Attributes:
        offset: up to here lines were yielded.
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
            file.seek(self._read)
            has_grown = False
            while chunk := file.read(CHUNK_BYTES):
                has_grown = True
                yield from self._taken(chunk)
        self._still_looks = 0 if has_grown else self._still_looks + 1
        if self._rest and (ended or self._still_looks >= _STILL_LOOKS):
            yield self._line(b"")

    def _taken(self, chunk: bytes) -> Iterator[LogLine]:
        """Yield the lines that end in the next bytes of the file, and those that are long enough."""
        self._read += len(chunk)
        pieces = chunk.splitlines(keepends=True)
        if self._follows_return and pieces[0] == b"\n":  # The other half of a line end.
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
        """Read on behind a position that was given as such before."""
        self.offset = self._read = offset
        with self.path.open("rb") as file:
            begin = max(0, offset - LINE_BYTES)
            file.seek(begin)
            before = file.read(offset - begin)
        self._follows_return = before.endswith(b"\r")
        self._is_cut = len(before) == LINE_BYTES and not (b"\n" in before or b"\r" in before)

    def skip(self, tail: int | None, since: float | None) -> None:
        """Leave out of what is there already what is not wanted."""
        status = self.path.stat()
        if since is not None and status.st_mtime < since:
            self.offset = self._read = status.st_size
        elif tail is not None:
            self._keep_last(tail)

    def _keep_last(self, count: int) -> None:
        """Begin with the last so many lines."""
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
                if position and chunk.startswith(b"\n"):  # A line end of two characters is one.
                    position -= 1
                    file.seek(position)
                    chunk = file.read(1) + chunk
                ends = [end.end() for end in _LINE_END.finditer(chunk)]
                if len(ends) >= count:
                    position += ends[-count]
                count -= min(count, len(ends))
        self.offset = self._read = position


def _cut(text: bytes) -> str:
    """Return the beginning of a line with a mark that it goes on; no character is cut in two."""
    return text.decode(errors="ignore") + "…"


class FolderReader:
    """Reads the files in the folder of a run; positions are bytes.

    Args:
        folder: the run.
        wanted: which output.
    """

    def __init__(self, folder: folders.RunFolder, wanted: LogSelection) -> None:
        self._folder, self._wanted = folder, wanted
        self._tails: dict[tuple[ReplicaId, int], _Tail] = {}
        self._is_first = wanted.behind is None

    @property
    def positions(self) -> Positions:
        """Return how far each attempt was read."""
        return {
            **(self._wanted.behind or {}),
            **{each: str(tail.offset) for each, tail in self._tails.items()},
        }

    def fresh(self, *, ended: bool) -> Iterator[LogLine]:
        """Yield what has come since (see `Reader`)."""
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
            # A reader that read it from elsewhere, as from its pod, has read all of it.
            size = path.stat().st_size
            tail.begin(min(int(position), size) if position.isdecimal() else size)
        return tail


def lines(
    reader: Reader, *, follow: Callable[[], bool] | None = None, pause_seconds: float = POLL_SECONDS
) -> Iterator[LogLine]:
    """Yield the lines of a run's replicas, attempt after attempt.

    Args:
        reader: of the run.
        follow: when given, wait for more as long as it returns True.
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
        found.append((path, ReplicaId.parse(replica), int(attempt)))
    return sorted(found, key=lambda item: (item[1], item[2]))
