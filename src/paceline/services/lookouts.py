"""The latest looks at many jobs, for many who ask at once: each job is looked at by one of them at a time."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from paceline.model.snapshots import Snapshot
from paceline.services.courses import Course, CourseReader
from paceline.services.life_cycles import LifeCycle
from paceline.services.looks import Look, Looker, pause_seconds

T = TypeVar("T")

#: Of so many jobs what was seen is kept: as many as people look at, not as many as there are.
MOST_JOBS = 32
#: How old a snapshot may be.
SNAPSHOT_SECONDS = 1.0


class _Latest(Generic[T]):
    """What was seen last, until it is too old.

    Args:
        see: sees.
        clock: seconds of any clock that only goes on.
        pause: for how long it is young enough, by how long it took.
    """

    def __init__(
        self, see: Callable[[], T], clock: Callable[[], float], pause: Callable[[float], float]
    ) -> None:
        self._see, self._clock, self._pause = see, clock, pause
        self._lock = threading.Lock()
        self._seen: tuple[float, T] | None = None

    def get(self) -> T:
        """Return it; who comes while another one looks gets what was seen before that, if anything."""
        if self._seen is not None and self._lock.locked():
            return self._seen[1]
        with self._lock:
            begun = self._clock()
            if self._seen is None or begun >= self._seen[0]:
                found = self._see()
                done = self._clock()
                self._seen = done + self._pause(done - begun), found
            return self._seen[1]


class Lookout:
    """Looks at the jobs of one place, and keeps what it saw of those that are asked for most.

    Args:
        jobs: what can be done with them.
        clock: seconds of any clock that only goes on.
    """

    def __init__(self, jobs: LifeCycle, clock: Callable[[], float]) -> None:
        self._jobs, self._clock = jobs, clock
        self._lock = threading.Lock()
        self._looks: collections.OrderedDict[str, _Latest[Look]] = collections.OrderedDict()
        self._snapshots: collections.OrderedDict[str, _Latest[Snapshot]] = collections.OrderedDict()
        self._courses: collections.OrderedDict[str, _Latest[Course]] = collections.OrderedDict()

    def look(self, name: str) -> Look:
        """Return the latest look at a job.

        Raises:
            NotFound: there is no such job.
            StoreError: the store or the run's folder cannot be read.
            ClusterError: the cluster does not answer.
        """
        return self._of(
            self._looks, name, lambda: Looker(self._jobs, name, thinned=True).look, pause_seconds
        ).get()

    def snapshot(self, name: str) -> Snapshot:
        """Return the latest snapshot of a job; raises as ``look`` does."""
        return self._of(
            self._snapshots,
            name,
            lambda: lambda: self._jobs.snapshot(name),
            lambda took: max(SNAPSHOT_SECONDS, took),
        ).get()

    def course(self, name: str) -> Course:
        """Return the course of a job until now; raises as ``look`` does."""
        return self._of(
            self._courses,
            name,
            lambda: CourseReader(self._jobs, name, lambda: self.look(name)).course,
            pause_seconds,
        ).get()

    def _of(
        self,
        kept: collections.OrderedDict[str, _Latest[T]],
        name: str,
        see: Callable[[], Callable[[], T]],
        pause: Callable[[float], float],
    ) -> _Latest[T]:
        with self._lock:
            if name not in kept:
                kept[name] = _Latest(see(), self._clock, pause)
                if len(kept) > MOST_JOBS:
                    kept.popitem(last=False)
            kept.move_to_end(name)
            return kept[name]
