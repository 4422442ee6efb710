"""What is measured of a run, and whether a fault was felt."""

from __future__ import annotations

import dataclasses

import pytest
from support import measured_runs
from support.measured_runs import START, report, sample

from benchmarks.diagnosis import checks, effects, knowns
from benchmarks.diagnosis.trials import Outcome
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.recordings import Recording
from paceline.model.roles import ReplicaId, Role

WORKERS = [ReplicaId(Role.WORKER, index) for index in range(3)]
PS = ReplicaId(Role.PS, 0)
SECONDS = 30


def run(*rates: int, until: int = SECONDS, loss: float | None = 0.5) -> Recording:
    """Return a live run whose workers train at so many examples a second."""
    steps = [
        report(worker, second, examples=rate, steps=1, loss=loss, input_wait_seconds=0.25)
        for worker, rate in zip(WORKERS, rates, strict=False)
        for second in range(1, until + 1)
        if rate
    ]
    samples = [
        sample(each, second, cpu_cores=used, cpu_limit_cores=0.5, memory_bytes=90, memory_limit_bytes=100)
        for each, used in ((PS, 0.1), *((worker, 0.4) for worker in WORKERS[: len(rates)]))
        for second in range(1, SECONDS + 1)
    ]
    made = measured_runs.run(ps=1, workers=len(rates), phase=JobPhase.RUNNING)
    return Recording(run=made, at=START + SECONDS, samples=samples, steps=steps)


def outcome(*rates: int, **more: object) -> Outcome:
    return Outcome(run(*rates, **more), START)  # type: ignore[arg-type]


def known(*rates: int) -> knowns.Known:
    return knowns.of(run(*rates), START)


def test_rates_are_those_of_each_trainer() -> None:
    assert effects.rates(run(100, 50), START) == pytest.approx({"worker-0": 100.0, "worker-1": 50.0})
    assert effects.rates(run(100, 0), START)["worker-1"] == 0.0


def test_what_is_known_of_a_twin() -> None:
    twin = known(100, 60)
    assert twin.speed == pytest.approx(160)
    assert twin.rate == pytest.approx(80)
    assert twin.cores == pytest.approx({Role.PS: 0.1, Role.WORKER: 0.4})
    assert twin.memory_bytes[Role.WORKER] == 90


@pytest.mark.parametrize(("rate", "felt"), [(95, False), (80, True)])
def test_a_slowdown_is_felt_from_a_tenth_on(rate: int, felt: bool) -> None:
    effect = checks.slower()(known(100, 100), outcome(rate, rate))
    assert effect.holds is felt
    assert effect.speed_ratio == pytest.approx(rate / 100)


@pytest.mark.parametrize(("rate", "felt"), [(90, False), (50, True)])
def test_a_straggler_is_far_behind_the_others(rate: int, felt: bool) -> None:
    assert checks.straggles("worker-2")(known(100, 100, 100), outcome(100, 100, rate)).holds is felt


def test_who_has_no_steps_is_idle() -> None:
    assert checks.idle("worker-2")(known(100, 100, 100), outcome(100, 100, 0)).holds
    assert not checks.idle("worker-2")(known(100, 100, 100), outcome(100, 100, 1)).holds


def test_more_workers_that_do_no_more() -> None:
    check = checks.not_faster(1.35, per_worker=0.65)
    assert check(known(100, 100), outcome(60, 60, 60)).holds
    assert not check(known(100, 100), outcome(90, 90, 90)).holds


def test_a_standstill_is_long_without_steps() -> None:
    assert checks.stands_still(10)(known(100), outcome(100, until=15)).holds
    assert not checks.stands_still(10)(known(100), outcome(100)).holds


@pytest.mark.parametrize(("loss", "felt"), [(None, True), (float("nan"), True), (0.4, False)])
def test_a_loss_that_is_no_number(loss: float | None, felt: bool) -> None:
    assert checks.loses_its_loss()(known(100), outcome(100, loss=loss)).holds is felt


def test_load_against_limits() -> None:
    assert checks.busy(Role.WORKER, 0.75)(known(1), outcome(1)).holds
    assert not checks.busy(Role.PS, 0.75)(known(1), outcome(1)).holds
    assert checks.resting(Role.PS, 0.25)(known(1), outcome(1)).holds
    assert checks.memory(Role.PS, least=0.9)(known(1), outcome(1)).holds
    assert not checks.memory(Role.PS, most=0.3)(known(1), outcome(1)).holds


def test_a_healthy_run_waits_for_nothing() -> None:
    assert "input" in (checks.ailing(outcome(100, 100)) or "")
    quick = outcome(100, 100)
    steps = [dataclasses.replace(each, input_wait_seconds=0.0) for each in quick.recording.steps]
    healthy = Outcome(dataclasses.replace(quick.recording, steps=steps), START)
    assert checks.ailing(healthy) is None
