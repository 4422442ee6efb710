"""The course of a job: each measurement counts once, however often and in whatever order it is looked at."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy
import pytest
from support import filled_homes
from support.measured_runs import START, replica, report, sample

from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import Sample, StepReport
from paceline.model.roles import Role
from paceline.services.local import jobs
from paceline.services.observing import diagnosis_runs, time_series
from paceline.services.observing.time_series import Gauge, TimeSeries, TimeSeriesReader

PS, WORKER = replica(Role.PS, 0), replica(Role.WORKER, 1)


@pytest.fixture
def run(api: jobs.Jobs) -> Run:
    """A run that goes on; the store has its samples, and a test says what a look at it sees."""
    made = filled_homes.fill(api.home, "clicks", phase=JobPhase.RUNNING, submitted_at=START - 1)
    return dataclasses.replace(made, started_at=START)


class ChangingJob:
    """What looks at a job see, one after the other."""

    def __init__(self, run: Run) -> None:
        self.run, self.now = run, START
        self.samples: list[Sample] = []
        self.steps: list[StepReport] = []

    def look(self) -> diagnosis_runs.DiagnosisRun:
        since = -math.inf if self.run.phase.is_final else self.now - diagnosis_runs.REACH_SECONDS
        return diagnosis_runs.of(
            Recording(
                run=self.run,
                at=self.now,
                samples=[each for each in self.samples if each.at >= since],
                steps=[each for each in self.steps if each.at >= since],
            )
        )


def loads(seconds: Sequence[int], cores: float = 0.5) -> list[Sample]:
    return [
        sample(
            PS, second, cpu_cores=cores, cpu_limit_cores=2.0, network_sent_bytes=100, throttled_seconds=0.5
        )
        for second in seconds
    ]


def known(course: TimeSeries, gauge: Gauge) -> list[float]:
    return [float(each) for each in course.loads[gauge][0] if math.isfinite(each)]


def test_what_is_seen_twice_counts_once(api: jobs.Jobs, run: Run) -> None:
    job = ChangingJob(run)
    reader = TimeSeriesReader(api, run.name, job.look)
    for now in (5, 5, 8):
        job.now = START + now
        job.samples = loads(range(1, now + 1))
        job.steps = [report(WORKER, second, examples=64, loss=0.5) for second in range(1, now + 1)]
        found = reader.course()
        assert known(found, Gauge.CPU) == [0.5] * now
        assert known(found, Gauge.SENT) == [100.0] * now
        assert list(found.shares[Gauge.CPU][0]) == [0.25] * now
        assert list(found.examples_per_second) == [64.0] * now
        assert found.replicas == (PS,)
    assert found.grid.cells == 8
    assert numpy.isnan(found.loads[Gauge.GPU]).all()


def test_cells_grow_with_the_job_and_the_store_tells_what_was_before(api: jobs.Jobs, run: Run) -> None:
    job = ChangingJob(run)
    reader = TimeSeriesReader(api, run.name, job.look)
    job.samples = loads(range(1, 100))
    job.now = START + 100
    assert reader.course().grid.cell_seconds == 1
    later = loads(range(100, 1000), cores=1.5)
    api.store.append_samples(run.name, [*job.samples, *later])
    # The course was not read for a quarter of an hour.
    job.samples, job.now = [*job.samples, *later], START + 1000
    found = reader.course()
    assert found.grid.cell_seconds == 8
    assert found.grid.cells <= time_series.MOST_CELLS
    assert found.loads[Gauge.CPU][0, 2] == pytest.approx(0.5, rel=0.01)
    assert found.loads[Gauge.CPU][0, -2] == pytest.approx(1.5, rel=0.01)


def test_trainers_whose_reports_are_still_to_come_do_not_make_it_slower(api: jobs.Jobs, run: Run) -> None:
    job = ChangingJob(run)
    trainers = [replica(Role.WORKER, index) for index in range(3)]
    for of, until in zip(trainers, (9, 6, 6), strict=True):
        job.steps += [report(of, second, examples=10) for second in range(1, until + 1)]
    job.now = START + 9
    speed = TimeSeriesReader(api, run.name, job.look).course().examples_per_second
    assert list(speed[:6]) == [30.0] * 6
    assert numpy.isnan(speed[6:]).all()


def test_a_job_that_has_ended_needs_no_store(api: jobs.Jobs, run: Run) -> None:
    job = ChangingJob(dataclasses.replace(run, name="gone", phase=JobPhase.SUCCEEDED, finished_at=START + 10))
    job.samples, job.now = loads(range(1, 10)), START + 9999
    reader = TimeSeriesReader(api, "gone", job.look)
    assert reader.course().grid.cells == 10
    assert known(reader.course(), Gauge.CPU) == [0.5] * 9


def test_ends_that_only_some_trainers_are_in_say_nothing_of_all(api: jobs.Jobs, run: Run) -> None:
    job = ChangingJob(dataclasses.replace(run, phase=JobPhase.SUCCEEDED, finished_at=START + 10))
    for of, seconds in ((0, range(2, 11)), (1, range(1, 9))):
        job.steps += [report(replica(Role.WORKER, of), second, examples=10) for second in seconds]
    job.now = START + 10
    speed = list(TimeSeriesReader(api, run.name, job.look).course().examples_per_second)
    assert speed[1:9] == [20.0] * 7 + [10.0]
    assert math.isnan(speed[0])
    assert speed[9] == 10.0  # One has ended before.


def test_a_job_that_has_not_started_has_no_course(api: jobs.Jobs, run: Run) -> None:
    found = TimeSeriesReader(
        api, run.name, ChangingJob(dataclasses.replace(run, started_at=None)).look
    ).course()
    assert (found.grid.cells, found.replicas, list(found.loss)) == (0, (), [])
