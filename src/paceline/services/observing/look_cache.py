"""The latest looks at many jobs, for many who ask at once: each job is looked at by one of them at a time."""

from __future__ import annotations

import collections
import dataclasses
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Generic, TypeVar

from paceline.model.jobs.runs import Run
from paceline.model.measures.snapshots import Snapshot
from paceline.services.life_cycles import LifeCycle
from paceline.services.observing import snapshots
from paceline.services.observing.diagnosis_runs import DiagnosisRun, Looker, pause_seconds
from paceline.services.observing.time_series import TimeSeries, TimeSeriesReader

T = TypeVar("T")

#: Of so many jobs what was seen is kept: as many as people look at, not as many as there are.
MOST_JOBS = 32
#: How old a snapshot may be; for those who do not wait for it, twice as old.
SNAPSHOT_SECONDS = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class _Seen(Generic[T]):
    """What was seen.

    Attributes:
        due: when it is to be seen anew.
        until: from then on it is too old for any caller.
    """

    value: T
    due: float
    until: float


class Latest(Generic[T]):
    """What was seen last, until it is too old.

    Args:
        see: sees.
        clock: seconds of any clock that only goes on.
        pause: for how long it is young enough, by how long it took.
        beside: sees anew when it is time for that, while those who ask get what was seen last, for as long
            again; None: those who ask see.
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
        """Return it; who comes while another one looks gets what was seen before that, if anything.

        Args:
            waits: until it was seen anew, if it is time for that.
        """
        seen = self._seen
        if seen is not None and not waits:
            if self._lock.locked():
                return seen.value
            now = self._clock()
            if self._beside is not None and seen.due <= now < seen.until:
                # If that fails, a caller gets the error once the value is too old for any caller.
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


#: What was seen, by the name of a job, with which job of that name it is.
_Kept = collections.OrderedDict[str, tuple[Hashable, Latest[T]]]


def identity(run: Run) -> Hashable:
    """Return what a job is known by as long as it is the same: with the same file, and one end."""
    return run.name, run.submitted_at, run.source, run.finished_at


class LookCache:
    """Looks at the jobs of one place, and keeps what it saw of those that are asked for most.

    Its methods take a job as it is known now: what was seen before its end, before a change or of another job
    of that name is no look at it.

    Args:
        jobs: what can be done with them.
        clock: seconds of any clock that only goes on.
    """

    def __init__(self, jobs: LifeCycle, clock: Callable[[], float]) -> None:
        self._jobs, self._clock = jobs, clock
        self._beside = ThreadPoolExecutor(2, "looks")
        self._lock = threading.Lock()
        self._looks: _Kept[DiagnosisRun] = collections.OrderedDict()
        self._snapshots: _Kept[Snapshot] = collections.OrderedDict()
        self._courses: _Kept[TimeSeries] = collections.OrderedDict()

    def look(self, run: Run) -> DiagnosisRun:
        """Return the latest look at a job.

        Raises:
            NotFound: there is no such job any more.
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
        """Return the latest snapshot of a job; raises as ``look`` does.

        Of a large job that has ended it is made from the longer intervals of a look.

        Args:
            run: the job.
            waits: for one that is not older than it may be, where others get the one before it.
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
        """Return the course of a job until now; raises as ``look`` does."""
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
