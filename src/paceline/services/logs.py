"""The output of replicas, line by line, of one or all, from the beginning or as it comes."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from paceline.engines.local import folders
from paceline.model.roles import ReplicaId

POLL_SECONDS = 0.2


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
            data = file.read()
        end = len(data) if ended else data.rfind(b"\n") + 1
        self.offset += end
        for line in data[:end].decode(errors="replace").splitlines():
            yield LogLine(self.replica, self.attempt, line)


def lines(
    folder: folders.RunFolder,
    *,
    wanted: Callable[[ReplicaId], bool] = lambda replica: True,
    follow: Callable[[], bool] | None = None,
) -> Iterator[LogLine]:
    """Yield the lines of a run's replicas, attempt after attempt.

    Args:
        folder: the run.
        wanted: which replicas.
        follow: when given, wait for more as long as it returns True.
    """
    tails: dict[Path, _Tail] = {}
    while True:
        going_on = follow is not None and follow()
        for path, replica, attempt in _files(folder):
            if wanted(replica):
                tail = tails.setdefault(path, _Tail(path, replica, attempt))
                yield from tail.lines(ended=not going_on)
        if not going_on:
            return
        time.sleep(POLL_SECONDS)


def _files(folder: folders.RunFolder) -> list[tuple[Path, ReplicaId, int]]:
    found = []
    for path in folder.logs.glob("*.log"):
        replica, _, attempt = path.stem.rpartition(".")
        found.append((path, ReplicaId.parse(replica), int(attempt)))
    return sorted(found, key=lambda item: (item[1], item[2]))
