"""Reads and follows the output of a job's pods, and the kept output of pods that are gone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from paceline.engines.kubernetes.clusters import OutputLine
from paceline.engines.local.folders import RunFolder
from paceline.model.roles import ReplicaId
from paceline.services.logs import FolderReader, LogLine, LogSelection, Positions

#: An attempt, and its pod's name.
Attempt = tuple[tuple[ReplicaId, int], str]
_MARK, _COUNT = "@", "#"
_MANY = 10**9


@dataclasses.dataclass(frozen=True, slots=True)
class _Place:
    """How far the output of a pod was read.

    Attributes:
        at: when the last line was written, in the API's format of times.
        count: how many lines of the moment ``at`` were read.
    """

    at: str = ""
    count: int = 0

    def __str__(self) -> str:
        return f"{_MARK}{self.at}{_COUNT}{self.count}"

    @classmethod
    def parse(cls, text: str) -> _Place:
        """Return the place that a position names; the beginning if the position has another format."""
        at, mark, count = text.removeprefix(_MARK).rpartition(_COUNT)
        return cls(at, int(count)) if text.startswith(_MARK) and mark and count.isdecimal() else cls()

    def after(self, line: OutputLine) -> _Place:
        """Return the place after the next line."""
        return _Place(line.at, self.count + 1 if line.at == self.at else 1)


class PodReader:
    """Reads the output of pods.

    A position is a time; in the kept output of a pod that is gone, it is an offset in bytes.

    Args:
        attempts: returns the attempts whose pods exist, in order.
        read: returns the lines of a pod, given its name, how many of the last lines (None: all), and their
            greatest age in seconds (None: any).
        kept: the folder with the output of pods that are gone.
        wanted: which output to read.
        clock: Unix seconds.
    """

    def __init__(
        self,
        attempts: Callable[[], Sequence[Attempt]],
        read: Callable[[str, int | None, int | None], Sequence[OutputLine]],
        kept: RunFolder,
        wanted: LogSelection,
        clock: Callable[[], float],
    ) -> None:
        self._attempts, self._read, self._wanted, self._clock = attempts, read, wanted, clock
        self._present = {attempt for attempt, _ in attempts()}
        self._kept = FolderReader(kept, wanted)
        self._is_first = True
        self._places: dict[tuple[ReplicaId, int], _Place] = {}

    @property
    def positions(self) -> Positions:
        """How far the output of each attempt was read."""
        kept = {each: at for each, at in self._kept.positions.items() if each not in self._present}
        return {**(self._wanted.behind or {}), **kept, **{each: str(at) for each, at in self._places.items()}}

    def fresh(self, *, ended: bool) -> Iterator[LogLine]:
        """Yield the lines that have come since the last call (see `services.logs.Reader`)."""
        if self._is_first:
            for line in self._kept.fresh(ended=True):
                if (line.replica, line.attempt) not in self._present:
                    yield line
        for attempt, pod in self._attempts():
            if self._wanted.takes(*attempt):
                yield from self._fresh_of(attempt, pod, ended=ended)
        self._is_first = False

    def _fresh_of(self, attempt: tuple[ReplicaId, int], pod: str, *, ended: bool) -> Iterator[LogLine]:
        begins = attempt not in self._places
        behind = self._wanted.behind
        place = _Place.parse((behind or {}).get(attempt, "")) if begins else self._places[attempt]
        tail = self._wanted.tail if begins and self._is_first and behind is None else None
        since = self._wanted.since if behind is None else None
        old = None if since is None else max(1, round(self._clock() - since))
        lines, left = self._read(pod, None if tail is None else max(1, tail), old), place.count
        if tail is not None and lines:
            # How many lines of the first moment precede these is unknown: all of that moment count as read.
            read = _MANY if lines[0].has_ended or ended else 0
            place, left, lines = _Place(lines[0].at, read), 0, lines[:tail]
        self._places[attempt] = place
        for line in lines:
            if line.at < place.at or not (line.has_ended or ended):
                continue
            if line.at == place.at and left > 0:  # It was read before.
                left -= 1
                continue
            self._places[attempt] = self._places[attempt].after(line)
            for text in line.texts:
                yield LogLine(*attempt, text)
