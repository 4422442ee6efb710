"""Caches the latest looks at many jobs for many concurrent readers, of whom one at a time looks at a job."""

from __future__ import annotations

import collections
import dataclasses
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Generic, TypeVar

from paceline.model.jobs.runs import Run
from paceline.model.measures import snapshots
from paceline.model.measures.snapshots import Snapshot
from paceline.services.life_cycles import StoredJobReader
from paceline.services.observing.diagnosis_runs import DiagnosisRun, Looker, pause_seconds
from paceline.services.observing.time_series import TimeSeries, TimeSeriesReader

T = TypeVar("T")

#: The most jobs whose looks are cached: as many as people watch, not as many as there are.
MOST_JOBS = 32
#: How old a snapshot may be; for callers that do not wait for a new one, twice as old.
SNAPSHOT_SECONDS = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class _Seen(Generic[T]):
    """A cached value.

    Attributes:
        due: when it is to be refreshed.
        until: from this time on it is too old for any caller.
    """

    value: T
    due: float
    until: float


class Latest(Generic[T]):
    """The latest value of a function, until it is too old.

    Args:
        see: computes the value.
        clock: seconds of any monotonic clock.
        pause: returns how long a value is fresh, from how long it took to compute.
        beside: refreshes a due value in the background while callers get the old one, for the same time
            again; None: the callers compute the value themselves.
    """

    def __init__(
        self,
        see: Callable[[], T],
        clock: Callable[[], float],
        pause: Callable[[float], float],
        beside: Executor | None = None,
    ) -> None:
        self._see, self._clock, self._pause, self._beside = see, clock, pause, beside
        self._lock = threading.Lock()
        self._seen: _Seen[T] | None = None

    def get(self, *, waits: bool = False) -> T:
        """Return the value.

        While another caller computes a new value, the previous one is returned, if there is one.

        Args:
            waits: whether to wait for a new value if the old one is due.
        """
        seen = self._seen
        if seen is not None and not waits:
            if self._lock.locked():
                return seen.value
            now = self._clock()
            if self._beside is not None and seen.due <= now < seen.until:
                # If the refresh fails, a caller gets the error once the value is too old for any caller.
                self._beside.submit(self._look)
                return seen.value
        return self._look()

    def _look(self) -> T:
        with self._lock:
            begun = self._clock()
            if self._seen is None or begun >= self._seen.due:
                found = self._see()
                done = self._clock()
                pause = self._pause(done - begun)
                self._seen = _Seen(found, done + pause, done + 2 * pause)
            return self._seen.value


#: The cached values by job name, each with the identity of the job.
_Kept = collections.OrderedDict[str, tuple[Hashable, Latest[T]]]


def identity(run: Run) -> Hashable:
    """Return a key that stays the same while a job has the same job file and the same end."""
    return run.name, run.submitted_at, run.source, run.finished_at


class LookCache:
    """Looks at the jobs of one place, and caches the results of the jobs used most recently.

    Its methods take the present run of a job. A cached look is not used for a run that has since ended, was
    changed, or is another one of the same name.

    Args:
        jobs: the operations on the jobs.
        clock: seconds of any monotonic clock.
    """

    def __init__(self, jobs: StoredJobReader, clock: Callable[[], float]) -> None:
        self._jobs, self._clock = jobs, clock
        self._beside = ThreadPoolExecutor(2, "looks")
        self._lock = threading.Lock()
        self._looks: _Kept[DiagnosisRun] = collections.OrderedDict()
        self._snapshots: _Kept[Snapshot] = collections.OrderedDict()
        self._courses: _Kept[TimeSeries] = collections.OrderedDict()

    def look(self, run: Run) -> DiagnosisRun:
        """Return the latest look at a job.

        Raises:
            NotFound: the job no longer exists.
            StoreError: the store or the run's folder cannot be read.
            ClusterError: the cluster does not answer.
        """
        return self._of(
            self._looks,
            run,
            lambda: Looker(self._jobs, run.name, thinned=True).look,
            pause_seconds,
        ).get()

    def snapshot(self, run: Run, *, waits: bool = False) -> Snapshot:
        """Return the latest snapshot of a job; it raises the same errors as ``look``.

        For a large job that has ended, it is computed from the longer intervals of a look.

        Args:
            run: the job.
            waits: whether to wait for a snapshot within the age limit, where other callers get the previous
                one.
        """
        return self._of(
            self._snapshots,
            run,
            lambda: lambda: self._see(run.name),
            lambda took: max(SNAPSHOT_SECONDS, took),
        ).get(waits=waits)

    def _see(self, name: str) -> Snapshot:
        run = self._jobs.get(name)
        if run.phase.is_final:
            recording = self.look(run).recording
            if recording.run.phase.is_final:
                return snapshots.of(recording)
        return self._jobs.snapshot(name)

    def course(self, run: Run) -> TimeSeries:
        """Return the course of a job until now; it raises the same errors as ``look``."""
        return self._of(
            self._courses,
            run,
            lambda: TimeSeriesReader(self._jobs, run.name, lambda: self.look(run)).course,
            pause_seconds,
        ).get()

    def _of(
        self,
        kept: _Kept[T],
        run: Run,
        see: Callable[[], Callable[[], T]],
        pause: Callable[[float], float],
    ) -> Latest[T]:
        now = identity(run)
        with self._lock:
            if run.name not in kept or kept[run.name][0] != now:
                kept[run.name] = now, Latest(see(), self._clock, pause, self._beside)
                if len(kept) > MOST_JOBS:
                    kept.popitem(last=False)
            kept.move_to_end(run.name)
            return kept[run.name][1]
