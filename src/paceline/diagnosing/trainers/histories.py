"""When each trainer had steps, over all that is known of a job."""

from __future__ import annotations

import dataclasses
import statistics

from paceline.diagnosing.cases import Case
from paceline.model.measures import intervals, rates
from paceline.model.measures.samples import StepReport, by_replica
from paceline.model.measures.snapshots import ReplicaSnapshot


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What a trainer has done; times are Unix seconds.

    Attributes:
        trainer: which.
        since: when its first step began.
        until: when it reported steps last.
        seconds: the time that its reports are about.
        attempt: the attempt that reported last.
        reports: all of them that had steps, in the order of time.
    """

    trainer: ReplicaSnapshot
    since: float
    until: float
    seconds: float
    attempt: int
    reports: tuple[StepReport, ...]

    @property
    def beat_seconds(self) -> float:
        """Return how long it usually takes from report to report."""
        return statistics.median(each.interval_seconds or 0.0 for each in self.reports)

    def rate(self, until: float) -> float | None:
        """Return its examples a second up to a moment, or its steps if it does not tell examples."""
        before = [each for each in self.reports if each.at <= until]
        counted = all(each.examples is not None for each in before)
        return rates.rate(before, lambda each: each.examples if counted else each.steps)


def of(case: Case) -> tuple[History, ...]:
    """Return the histories of the trainers that had steps; of those that the job still wants."""
    found = []
    reports = by_replica(each for each in case.recording.steps if each.steps and each.interval_seconds)
    for trainer in (each for each in case.trainers if case.spec.has(each.replica)):
        own = tuple(reports.get(trainer.replica, ()))
        if own:
            found.append(
                History(
                    trainer=trainer,
                    since=intervals.stretch(own[0])[0],
                    until=own[-1].at,
                    seconds=intervals.covered_seconds(map(intervals.stretch, own)),
                    attempt=own[-1].attempt,
                    reports=own,
                )
            )
    return tuple(found)
