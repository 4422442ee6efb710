"""Computes and stores a one-line summary of each job, and the findings of jobs that have ended."""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from paceline.diagnosing import catalogues
from paceline.errors import NotFound, PacelineError
from paceline.model.explanations.causes import Cause
from paceline.model.explanations.conclusions import Conclusion
from paceline.model.explanations.diagnosis_summaries import DiagnosisSummary
from paceline.model.jobs.retentions import expires_at
from paceline.model.jobs.run_queries import RunQuery
from paceline.model.jobs.runs import LOCAL
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures import rates, snapshots
from paceline.model.measures.samples import StepReport
from paceline.model.measures.snapshots import Snapshot
from paceline.services import retentions
from paceline.services.life_cycles import JobReader, StoredJobReader, StoredLifeCycle
from paceline.services.observing import diagnosis_runs, recordings
from paceline.services.observing.diagnosis_runs import DiagnosisRun
from paceline.stores import Store

if TYPE_CHECKING:
    from paceline.services.observing.look_cache import LookCache

T = TypeVar("T")

log = logging.getLogger("paceline.diagnosis_summaries")

#: How many stretches of time a trend has.
STRETCHES = 20
#: How often to make a round over the jobs.
ROUND_SECONDS = 5.0
#: The most jobs looked at in a round: running jobs, and ended jobs without a conclusion.
MOST_RUNNING, MOST_ENDED = 200, 5
#: The last measurements are stored within this time after the end.
SETTLE_SECONDS = 5.0
#: How often to look for old runs, and how many of them are thinned or deleted at once.
AGE_SECONDS, MOST_AGED = 3600.0, 5


def of(snapshot: Snapshot, look: DiagnosisRun) -> DiagnosisSummary:
    """Return what a list shows of a job."""
    present = [cause for cause in look.explanation.causes if not cause.is_past]
    primary = present[0] if present else None
    imbalances = snapshot.servers.imbalances if snapshot.servers else ()
    return DiagnosisSummary(
        at=snapshot.at,
        examples_per_second=snapshot.examples_per_second,
        trend=trend(look.recording.steps),
        progress=snapshot.progress,
        eta_seconds=snapshot.eta_seconds,
        imbalance=next(
            (imbalance.max_over_mean for imbalance in imbalances if imbalance.resource == "CPU"), None
        ),
        used_cores=rates.total(replica.cpu_cores for replica in snapshot.replicas),
        auc=snapshot.evaluation.auc if snapshot.evaluation else None,
        log_loss=snapshot.evaluation.log_loss if snapshot.evaluation else None,
        code=catalogues.topic(primary.name).code if primary else None,
        severity=primary.severity if primary else None,
        finding=primary.what if primary else None,
        codes=tuple(dict.fromkeys(catalogues.topic(cause.name).code for cause in _all(present))),
    )


def _all(causes: Sequence[Cause]) -> Iterator[Cause]:
    for each in causes:
        yield each
        yield from _all(each.effects)


def trend(reports: Sequence[StepReport], stretches: int = STRETCHES) -> tuple[float | None, ...]:
    """Return the examples per second of all trainers over equal stretches of time, oldest first.

    A stretch in which no trainer reported is None; a report counts where it ends. The trend is empty if the
    reports span almost no time.
    """
    counted = [report for report in reports if report.examples is not None]
    if not counted:
        return ()
    first, last = (choose(report.at for report in counted) for choose in (min, max))
    width = (last - first) / stretches
    if rates.quotient(sum(report.examples or 0 for report in counted), width) is None:
        return ()
    examples: list[float | None] = [None] * stretches
    for report in counted:
        place = min(stretches - 1, int((report.at - first) / width))
        examples[place] = (examples[place] or 0.0) + (report.examples or 0)
    return tuple(None if count is None else count / width for count in examples)


def conclude(jobs: StoredJobReader, name: str, look: DiagnosisRun | None = None) -> None:
    """Store what is found in a run that has ended, unless that was done before.

    Args:
        jobs: where the run is.
        name: its name.
        look: a look at the run; None: one is taken here.

    Raises:
        NotFound: the run does not exist.
        StoreError: the store or the run's folder cannot be read or written.
    """
    store, stored = jobs.stored(name)
    if store.conclusion(stored) is not None:
        return
    look = look or diagnosis_runs.Looker(jobs, name, thinned=True).look()
    store.conclude(stored, _conclusion(jobs.clock(), look), of(snapshots.of(look.recording), look))


def remember(jobs: JobReader, look: DiagnosisRun) -> None:
    """Store what a look has found in a run that has ended, if it can be stored here.

    Servers do this by themselves; without a server, the first look does it.
    """
    recording = look.recording
    if not (isinstance(jobs, StoredLifeCycle) and jobs.keeps):
        return
    if recording.run.phase.is_final and recording.conclusion is None:
        with contextlib.suppress(PacelineError):  # Nothing can be written: no loss.
            conclude(jobs, recording.run.name, look)


def _conclusion(at: float, look: DiagnosisRun) -> Conclusion:
    return Conclusion(at=at, version=metadata.version("paceline"), explanation=look.explanation)


def _is_of(jobs: StoredJobReader, name: str, run: str) -> bool:
    """Return whether a job is still the given run: its name may be reused, or its namespace gone."""
    try:
        return jobs.stored(name).name == run
    except NotFound:
        return False


class Watched(NamedTuple):
    """The job of a stored run: its life cycle, the cache that looks at it, and its name there."""

    jobs: StoredLifeCycle
    look_cache: LookCache
    name: str


class SummaryRefresher:
    """Makes rounds over the jobs of a store and stores their diagnosis summaries, until it is asked to end.

    Several refreshers may serve one store: each leaves alone what another has looked at a moment ago.

    Args:
        store: the store.
        engine: only jobs of this engine, as in ``Run.engine``.
        watched: returns the job of a run in the store.
        clock: Unix seconds.
        every_seconds: how old a summary may be before its job is looked at again.
    """

    def __init__(
        self,
        store: Store,
        engine: str,
        watched: Callable[[str], Watched],
        clock: Callable[[], float],
        *,
        every_seconds: float = 0.0,
    ) -> None:
        self._store, self._engine, self._watched, self._clock = store, engine, watched, clock
        self._every_seconds = every_seconds
        self._retention, self._ages_at = retentions.of_environment(), 0.0
        self._ended = threading.Event()
        self.failures = 0

    def run(self) -> None:
        """Make rounds until asked to end."""
        while not self._ended.is_set():
            self.go_round()
            self._ended.wait(ROUND_SECONDS)

    def end(self) -> None:
        """End after the job that is being looked at."""
        self._ended.set()

    def go_round(self) -> None:
        """Look at the running jobs, and at some that have ended and have no conclusion yet."""
        for names, keep in ((self._running, self._keep), (self._unseen, self._conclude)):
            for name in self._safely(names) or ():
                if self._ended.is_set():
                    return
                self._safely(functools.partial(keep, name))
        self._safely(self._age)

    def _running(self) -> list[str]:
        phases = tuple(phase for phase in JobPhase if not phase.is_final)
        query = RunQuery(phases=phases, limit=MOST_RUNNING)
        found = self._store.run_page(query, engine=self._engine).runs
        young = self._clock() - max(self._every_seconds, ROUND_SECONDS / 2)
        return [run.name for run in found if run.diagnosis is None or run.diagnosis.at < young]

    def _unseen(self) -> list[str]:
        before = self._clock() - SETTLE_SECONDS
        return self._store.unconcluded(engine=self._engine, ended_before=before, limit=MOST_ENDED)

    def _keep(self, run: str) -> None:
        jobs, look_cache, name = self._watched(run)
        if _is_of(jobs, name, run):
            found = jobs.get(name)
            self._store.save_diagnosis(run, of(look_cache.snapshot(found), look_cache.look(found)))

    def _conclude(self, run: str) -> None:
        jobs, look_cache, name = self._watched(run)
        if _is_of(jobs, name, run):
            conclude(jobs, name, look_cache.look(jobs.get(name)))
            return
        # The store has all that is still known of the run.
        now, found = self._clock(), self._store.get_run(run)
        look = diagnosis_runs.of(recordings.read(self._store, found, at=now, thinned=True))
        self._store.conclude(run, _conclusion(now, look), of(snapshots.of(look.recording), look))

    def _age(self) -> None:
        """Age some runs, once in a while (`retentions`)."""
        now = self._clock()
        if now < self._ages_at:
            return
        retentions.forget_audits(self._store, now=now)
        done = 0
        for run in self._store.list_runs(engine=LOCAL) if self._engine == LOCAL else ():
            at = expires_at(run)
            if at is not None and at <= now:
                self._safely(functools.partial(self._watched(run.name)[0].delete, run.name))
        for each in retentions.due(self._store, self._retention, now=now):
            if each.detail is not None:
                done += retentions.thin(self._store, each, now=now)
            elif each.run.engine == LOCAL:  # An operator deletes the runs of a cluster.
                jobs, _, name = self._watched(each.run.name)
                self._safely(functools.partial(jobs.delete, name))
                done += 1
            if done == MOST_AGED or self._ended.is_set():
                return
        self._ages_at = now + AGE_SECONDS

    def _safely(self, action: Callable[[], T]) -> T | None:
        """Run an action for one job; its failure must not keep the other jobs from being looked at."""
        try:
            return action()
        except PacelineError as error:  # The job was deleted, or the store does not answer.
            log.warning("%s", error.message)
        except Exception:  # The loop's edge.
            self.failures += 1
            log.exception("a job could not be looked at")
        return None
