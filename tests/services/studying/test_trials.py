"""What is measured of a trial."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paceline import specs
from paceline.errors import EngineError
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.samples import StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.services.studying import trials
from paceline.services.studying.trials import TrialRunner, TrialTimes

ONE, TWO = ReplicaId(Role.WORKER, 0), ReplicaId(Role.WORKER, 1)


class Late:
    """Jobs of which what was said is stored two looks later.

    Args:
        silent: says nothing after the beginning.
    """

    DELAY_SECONDS = 0.0

    def __init__(self, silent: ReplicaId | None = None) -> None:
        self._silent, self.looks = silent, 0

    def clock(self) -> float:
        return 100.0

    def get(self, name: str) -> Any:
        return SimpleNamespace(phase=JobPhase.RUNNING)

    def recording(self, name: str, since: float) -> Any:
        self.looks += 1
        known = 99.0 if self.looks < 3 else 101.0
        reports = [
            StepReport(replica=each, attempt=1, at=98.0 if each == self._silent else known, step=60, steps=60)
            for each in (ONE, TWO)
        ]
        return SimpleNamespace(steps=reports)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(trials, "_STORED_SECONDS", 0.2)


TIMES = TrialTimes(start_seconds=1.0, settle_seconds=0.0, window_seconds=1.5)
RUN: Any = SimpleNamespace(name="clicks")


def test_what_is_on_its_way_is_waited_for() -> None:
    jobs: Any = Late()
    assert trials.measured(jobs, RUN, 98.0, TIMES) == 100.0
    assert jobs.looks == 3


def test_who_says_nothing_any_more_is_not_waited_for_long() -> None:
    jobs: Any = Late(silent=TWO)
    assert trials.measured(jobs, RUN, 97.0, TIMES) == 100.0
    assert jobs.looks > 3


JOB = """apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: clicks}
spec:
  command: [python3, train.py]
  roles:
    ps: {replicas: 1, cpu: 1}
    chief: {cpu: 1}
    worker: {replicas: 3, cpu: 1}
    evaluator: {cpu: 1}
  autoscale: {ps: {cpu: {min: 500m, max: 2}}}
  training:
    batch_size: 100
    checkpoint: {restore_from: "s3://bucket/run"}
"""


class Refusing:
    """Jobs that are not submitted."""

    def __init__(self) -> None:
        self.asked: list[JobSpec] = []

    def delete(self, name: str, *, force: bool) -> None:
        assert force

    @contextlib.contextmanager
    def housed(self, spec: JobSpec, study: str) -> Iterator[JobSpec]:
        yield spec

    def submit(self, spec: JobSpec, **_: object) -> None:
        self.asked.append(spec)
        raise EngineError("there is no room")


def trial_of(source: str, *, examples: int | None = None) -> JobSpec:
    """Return the job that a trial of a job file submits."""
    jobs: Any = Refusing()
    bed = TrialRunner(jobs=jobs, base=Path("/jobs"), study="study", times=TIMES)
    if examples is None:
        bed.measure(source, "clicks-trial-0")
    else:
        bed.learn(source, "clicks-trial-0", examples)
    (asked,) = jobs.asked
    assert isinstance(asked, JobSpec)
    return asked


def test_nothing_moves_cores_within_a_trial() -> None:
    assert specs.parse_job(JOB).spec.autoscale is not None
    assert trial_of(JOB).autoscale is None


def test_a_trial_begins_from_no_checkpoint_of_another_run() -> None:
    for source in (JOB, JOB.replace("    evaluator: {cpu: 1}\n", "")):
        assert "restore_from" not in (trial_of(source).training or {}).get("checkpoint", {})


@pytest.mark.parametrize(
    ("consistency", "steps"),
    [
        ("{mode: asynchronous}", 120),
        ("{mode: bounded-staleness, staleness: 4}", 120),
        ("{mode: synchronous}", 30),
        ("{mode: synchronous, backup_workers: 1}", 40),
    ],
)
def test_a_trial_learns_from_the_examples_that_it_is_told(consistency: str, steps: int) -> None:
    found = trial_of(f"{JOB}    consistency: {consistency}\n", examples=12_000)
    assert (found.training or {})["max_steps"] == steps


class Learning:
    """Jobs of which one trains in some looks, and then ends.

    Args:
        made: the examples that all trainers have reported at each look.
    """

    def __init__(self, *made: int) -> None:
        self.left = list(made)

    def get(self, name: str) -> Any:
        return SimpleNamespace(phase=JobPhase.RUNNING if self.left else JobPhase.SUCCEEDED)

    def recording(self, name: str, since: float | None) -> Any:
        made = self.left.pop(0)
        report = StepReport(replica=ONE, attempt=1, at=1.0, step=1, steps=1, examples=made)
        return SimpleNamespace(steps=[report])


def test_dropped_examples_of_backup_workers_end_no_trial() -> None:
    text = f"{JOB}    consistency: {{mode: synchronous, backup_workers: 2}}\n"
    run: Any = SimpleNamespace(name="clicks", spec=specs.parse_job(text).spec)
    jobs: Any = Learning(4_000, 19_000, 23_000)
    trials._learnt(jobs, run, 12_000, lambda _: None)
    assert jobs.left == [], "trainers may make twice as many examples as are used"
    jobs = Learning(4_000, 37_000, 37_000)
    trials._learnt(jobs, run, 12_000, lambda _: None)
    assert jobs.left == [37_000]
