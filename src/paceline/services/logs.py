"""The output of replicas, line by line, of one or all, from the beginning or as it comes."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from paceline.engines.local import folders
from paceline.model.roles import ReplicaId

POLL_SECONDS = 0.2
#: How much of a file is read at once.
CHUNK_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a replica's output, without its end."""

    replica: ReplicaId
    attempt: int
    text: str


@dataclasses.dataclass(slots=True)
class _Tail:
    """One log file, read on from where we stopped; only whole lines until the end is known."""

    path: Path
    replica: ReplicaId
    attempt: int
    offset: int = 0

    def lines(self, *, ended: bool) -> Iterator[LogLine]:
        with self.path.open("rb") as file:
            file.seek(self.offset)
            rest = b""
            while chunk := file.read(CHUNK_BYTES):
                data = rest + chunk
                end = data.rfind(b"\n") + 1
                rest = data[end:]
                self.offset += end
                yield from self._split(data[:end])
        if ended and rest:
            self.offset += len(rest)
            yield from self._split(rest)

    def _split(self, data: bytes) -> Iterator[LogLine]:
        for line in data.decode(errors="replace").splitlines():
            yield LogLine(self.replica, self.attempt, line)

    def skip(self, tail: int | None, since: float | None) -> None:
        """Leave out of what is there already what is not wanted."""
        status = self.path.stat()
        if since is not None and status.st_mtime < since:
            self.offset = status.st_size
        elif tail is not None:
            self._keep_last(tail)

    def _keep_last(self, count: int) -> None:
        """Begin with the last so many lines."""
        with self.path.open("rb") as file:
            position = file.seek(0, os.SEEK_END)
            if position and count:
                file.seek(position - 1)
                count += file.read(1) == b"\n"
            while position > 0 and count > 0:
                size = min(CHUNK_BYTES, position)
                position -= size
                file.seek(position)
                chunk = file.read(size)
                end = len(chunk)
                while count > 0 and (end := chunk.rfind(b"\n", 0, end)) >= 0:
                    count -= 1
                if count == 0:
                    position += end + 1
        self.offset = position


def lines(
    folder: folders.RunFolder,
    *,
    wanted: Callable[[ReplicaId], bool] = lambda replica: True,
    follow: Callable[[], bool] | None = None,
    tail: int | None = None,
    attempt: int | None = None,
    since: float | None = None,
) -> Iterator[LogLine]:
    """Yield the lines of a run's replicas, attempt after attempt.

    Args:
        folder: the run.
        wanted: which replicas.
        follow: when given, wait for more as long as it returns True.
        tail: of what is there already, only the last so many lines of each attempt.
        attempt: only this one.
        since: of what is there already, only attempts that printed something after this (Unix seconds).
    """
    tails: dict[Path, _Tail] = {}
    first = True
    while True:
        going_on = follow is not None and follow()
        for path, replica, number in _files(folder):
            if not wanted(replica) or attempt not in (None, number):
                continue
            if path not in tails:
                tails[path] = _Tail(path, replica, number)
                if first:
                    tails[path].skip(tail, since)
            yield from tails[path].lines(ended=not going_on)
        if not going_on:
            return
        first = False
        time.sleep(POLL_SECONDS)


def _files(folder: folders.RunFolder) -> list[tuple[Path, ReplicaId, int]]:
    found = []
    for path in folder.logs.glob("*.log"):
        replica, _, attempt = path.stem.rpartition(".")
        found.append((path, ReplicaId.parse(replica), int(attempt)))
    return sorted(found, key=lambda item: (item[1], item[2]))
