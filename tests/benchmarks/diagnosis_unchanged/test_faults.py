"""How the mistakes of scripts are felt, and what a healthy job of a script is."""

from __future__ import annotations

import dataclasses

import pytest
from support import measured_runs
from support.measured_runs import START, report, sample

from benchmarks.diagnosis import effects, knowns
from benchmarks.diagnosis.faults.faults import Severity
from benchmarks.diagnosis.trials import Outcome
from benchmarks.diagnosis_unchanged import items
from benchmarks.diagnosis_unchanged.bases import FACTORISATION, SEQUENCE, WIDE_DEEP, ScriptBase
from benchmarks.diagnosis_unchanged.faults import MAKERS
from paceline.model.jobs.runs import ReplicaRow
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures.recordings import Recording
from paceline.model.roles import ReplicaId, Role

SECONDS = 30
BASE = ScriptBase(model=WIDE_DEEP, size="1.15.5")
KNOWN = knowns.Known(rates={"worker-0": 10.0}, cores={}, memory_bytes={}, bits_per_second={}, plan=None)


def outcome(
    rates: dict[str, int],
    *,
    server: ReplicaPhase = ReplicaPhase.RUNNING,
    restarts: int = 0,
    server_cores: float = 0.1,
) -> Outcome:
    """Return a live run whose trainers make so many steps a second; of their examples nothing is seen."""
    steps = [
        report(ReplicaId.parse(name), second, steps=rate)
        for name, rate in rates.items()
        for second in range(1, SECONDS + 1)
        if rate
    ]
    samples = [
        sample(ReplicaId(Role.PS, 0), second, cpu_cores=server_cores, cpu_limit_cores=0.5)
        for second in range(1, SECONDS + 1)
    ]
    rows = [
        ReplicaRow(replica=ReplicaId(Role.PS, 0), phase=server, attempt=1, restarts=0),
        ReplicaRow(
            replica=ReplicaId(Role.WORKER, 0),
            phase=ReplicaPhase.RUNNING,
            attempt=1 + restarts,
            restarts=restarts,
        ),
    ]
    run = measured_runs.run(ps=1, workers=2, phase=JobPhase.RUNNING)
    return Outcome(Recording(run=run, at=START + SECONDS, samples=samples, steps=steps, replicas=rows), START)


def felt(name: str, found: Outcome, base: ScriptBase = BASE) -> bool:
    return MAKERS[name].make(base, Severity.GROSS).felt(KNOWN, found).holds


def test_a_server_that_ended_is_felt_where_no_step_was_made() -> None:
    ended = ReplicaPhase.SUCCEEDED
    assert felt("ps-ended", outcome({}, server=ended))
    assert not felt("ps-ended", outcome({"worker-0": 10}, server=ended))
    assert not felt("ps-ended", outcome({}))


def test_training_anew_is_felt_by_the_restart() -> None:
    assert felt("trained-anew", outcome({"worker-0": 10}, restarts=1))
    assert not felt("trained-anew", outcome({"worker-0": 10}))


def test_a_mistake_that_costs_nothing_is_there_by_construction() -> None:
    effect = MAKERS["no-device-filters"].make(BASE, Severity.MILD).felt(KNOWN, outcome({"worker-0": 10}))
    assert effect.holds
    assert effect.speed_ratio == pytest.approx(1.0)


def test_steps_stand_for_examples_that_are_not_seen() -> None:
    found = outcome({"worker-0": 10, "worker-1": 5})
    assert effects.rates(found.recording, START) == pytest.approx({"worker-0": 10.0, "worker-1": 5.0})


def _healthy(script: str) -> items.ScriptItem:
    found = next(item for item in items.every() if not item.makers and item.base.model == script)
    assert isinstance(found, items.ScriptItem)
    return found


def test_a_healthy_job_has_servers_with_room_and_trainers_that_are_alike() -> None:
    item = _healthy(WIDE_DEEP)
    assert item.ailing(outcome({"worker-0": 10, "worker-1": 10})) is None
    assert "of its cores" in (item.ailing(outcome({"worker-0": 10, "worker-1": 10}, server_cores=0.45)) or "")
    assert "slower" in (item.ailing(outcome({"worker-0": 10, "worker-1": 5})) or "")
    assert item.ailing(outcome({})) == "no trainer reports steps"


@pytest.mark.parametrize(
    ("rates", "problem"),
    [
        ({"chief-0": 20}, None),
        ({"worker-0": 20, "worker-1": 20}, None),
        ({"worker-0": 20, "worker-1": 2}, "slower"),
        ({}, "no trainer"),
    ],
)
def test_a_coordinator_reports_the_steps_of_its_workers_or_all_as_its_own(
    rates: dict[str, int], problem: str | None
) -> None:
    item = _healthy(SEQUENCE)
    assert item.healthy_plan().steps_from == ("chief-0",)
    found = outcome(rates).recording
    run = dataclasses.replace(found.run, spec=item.base.job())
    said = item.ailing(Outcome(dataclasses.replace(found, run=run), START))
    assert (said is None) if problem is None else (said is not None and problem in said)


def test_faults_wait_for_the_trainers_that_report() -> None:
    for item in items.every():
        fault = item.fault()
        if fault is not None and item.base.model == SEQUENCE:
            assert fault.steps_from == ("chief-0",)
    alone = MAKERS["no-variables-on-ps"].make(ScriptBase(model=FACTORISATION, size="1.12.3"), Severity.MILD)
    assert alone.steps_from == ("worker-0",)
