"""When each trainer made steps, over the whole recording of a job."""

from __future__ import annotations

import dataclasses
import statistics

from paceline.diagnosing.cases import Case
from paceline.model.measures import intervals, rates
from paceline.model.measures.samples import StepReport, by_replica
from paceline.model.measures.snapshots import ReplicaSnapshot


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The steps of a trainer; times are Unix seconds.

    Attributes:
        trainer: the trainer.
        since: when its first step began.
        until: when it last reported steps.
        seconds: the time that its reports cover.
        attempt: the attempt that sent the last report.
        reports: all its reports with steps, in order of time.
    """

    trainer: ReplicaSnapshot
    since: float
    until: float
    seconds: float
    attempt: int
    reports: tuple[StepReport, ...]

    @property
    def beat_seconds(self) -> float:
        """The usual time from one report to the next."""
        return statistics.median(each.interval_seconds or 0.0 for each in self.reports)

    def rate(self, until: float) -> float | None:
        """Return the examples per second up to a moment, or the steps if examples are not reported."""
        before = [each for each in self.reports if each.at <= until]
        counted = all(each.examples is not None for each in before)
        return rates.rate(before, lambda each: each.examples if counted else each.steps)


def of(case: Case) -> tuple[History, ...]:
    """Return the histories of the trainers that made steps and are still in the job's spec."""
    histories = []
    reports = by_replica(
        report for report in case.recording.steps if report.steps and report.interval_seconds
    )
    for trainer in (replica for replica in case.trainers if case.spec.has(replica.replica)):
        trainer_reports = tuple(reports.get(trainer.replica, ()))
        if trainer_reports:
            histories.append(
                History(
                    trainer=trainer,
                    since=intervals.stretch(trainer_reports[0])[0],
                    until=trainer_reports[-1].at,
                    seconds=intervals.covered_seconds(map(intervals.stretch, trainer_reports)),
                    attempt=trainer_reports[-1].attempt,
                    reports=trainer_reports,
                )
            )
    return tuple(histories)
