"""What a job lost by a change, on reports that are made up."""

from __future__ import annotations

import itertools

import pytest

from benchmarks import resize
from paceline.model.measures.samples import Sample, StepReport
from paceline.model.roles import ReplicaId, Role

AT = 1000.0


def report(at: float, step: int, examples: int, index: int = 0) -> StepReport:
    worker = ReplicaId(Role.WORKER, index)
    return StepReport(
        replica=worker, attempt=1, at=at, interval_seconds=1.0, step=step, steps=1, examples=examples
    )


def trained(silent: int, back: int = 0) -> list[StepReport]:
    """Reports of each second: 100 examples before, nothing for some seconds, 200 examples from then on."""
    steps = itertools.count(1)
    before = [report(AT - 30 + second, next(steps), 100) for second in range(1, 31)]
    reached = next(steps) - back
    after = [
        report(AT + second, reached + second, 200)
        for second in range(silent + 1, int(resize.AFTER_SECONDS) + 2)
    ]
    return [*before, *after]


def test_a_change_at_once_costs_nothing() -> None:
    row = resize.judged(trained(0), AT)
    assert row["steps_lost"] == 0
    assert (row["before"], row["times"]) == (pytest.approx(100.0), pytest.approx(2.0))
    assert row["seconds_lost"] == pytest.approx(0.0, abs=1e-6)


def test_the_cores_at_the_end_are_those_of_the_role_that_got_more() -> None:
    def sample(role: Role, at: float, used: float | None) -> Sample:
        return Sample(replica=ReplicaId(role, 0), attempt=1, at=at, interval_seconds=1.0, cpu_cores=used)

    samples = [sample(Role.PS, 95.0, 0.4), sample(Role.PS, 96.0, 0.6), sample(Role.PS, 80.0, 9.0)]
    samples += [sample(Role.WORKER, 95.0, 9.0), sample(Role.PS, 97.0, None)]
    assert resize.cores_used(samples, Role.PS, 100.0) == pytest.approx(0.5)
    assert resize.cores_used(samples, Role.CHIEF, 100.0) is None


def test_silence_costs_its_seconds_and_what_was_not_saved_its_steps() -> None:
    row = resize.judged(trained(20, back=25), AT)
    assert row["times"] == 0.0
    assert row["seconds_lost"] == pytest.approx(20.0)
    assert row["steps_lost"] == 3


def test_a_worker_that_is_behind_another_one_has_lost_nothing() -> None:
    assert resize.steps_lost([report(1.0, 10, 1), report(1.5, 8, 1, index=1), report(2.0, 12, 1)]) == 0
