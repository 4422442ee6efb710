"""Trainers at the limit of their cores while servers rest."""

from __future__ import annotations

from typing import Any

from support import cases
from support.cases import found

from paceline.diagnosing.trainers.compute_bounds import compute_bound
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.measures.recordings import Recording

FULL = {"cpu_cores": 0.97, "cpu_limit_cores": 1.0}
SMALL = {"cpu_cores": 0.19, "cpu_limit_cores": 0.2}


def _recording(trainer: dict[str, Any], server: dict[str, Any] | None = None, **more: Any) -> Recording:
    servers = dict.fromkeys(("ps-0", "ps-1"), server or cases.SERVER)
    return cases.recording({**servers, "worker-0": trainer, "worker-1": trainer}, **more)


def test_a_balanced_job_is_told_what_more_cores_would_bring() -> None:
    (cause,) = found(compute_bound, _recording(FULL))
    assert cause.severity is Severity.INFO
    assert cause.what.startswith(
        "Trainers use 97% of their cores while the PS have room (20% at most): twice the cores would bring x "
    )
    assert cause.changes == ()
    assert cause.next_steps[0].startswith("nothing has to be done")
    assert cause.gain is not None
    assert 1.4 < cause.gain.low <= cause.gain.high < 2.0


def test_cores_that_lie_at_servers_are_moved() -> None:
    (cause,) = found(compute_bound, _recording(SMALL))
    assert cause.severity is Severity.WARNING
    assert cause.changes == (
        FieldChange(path=("spec", "roles", "ps", "cpu"), value=0.8),
        FieldChange(path=("spec", "roles", "worker", "cpu"), value=0.4),
    )
    assert cause.evidence[1].text == "the PS leave 1.60 cores idle; all trainers together have 0.40"
    assert cause.gain is not None
    assert 1.1 < cause.gain.high <= 2.0


def test_trainers_with_room_are_not_bound() -> None:
    assert not found(compute_bound, _recording(cases.TRAINER))


def test_one_of_two_is_not_most() -> None:
    loads = {"ps-0": cases.SERVER, "worker-0": FULL, "worker-1": cases.TRAINER}
    assert not found(compute_bound, cases.recording(loads))


def test_busy_servers_may_be_what_binds() -> None:
    assert not found(compute_bound, _recording(FULL, {"cpu_cores": 0.75, "cpu_limit_cores": 1.0}))


def test_trainers_that_wait_for_input_decode() -> None:
    waiting = {**cases.STEPS, "input_wait_seconds": 0.4}
    assert not found(compute_bound, _recording(FULL, steps={"worker-0": waiting, "worker-1": waiting}))


def test_a_machine_that_all_share_is_used_together() -> None:
    trainer, server = {"cpu_cores": 0.9}, {"cpu_cores": 0.05}
    (cause,) = found(compute_bound, _recording(trainer, server, facts=(("cores", "2"),)))
    assert (cause.severity, cause.changes) == (Severity.INFO, ())


def test_an_evaluator_that_takes_the_cores_is_another_matter() -> None:
    loads = {"ps-0": {"cpu_cores": 0.05}, "worker-0": {"cpu_cores": 0.9}, "evaluator-0": {"cpu_cores": 1.0}}
    assert not found(compute_bound, cases.recording(loads, facts=(("cores", "2"),)))


def test_without_limits_nothing_is_said() -> None:
    assert not found(compute_bound, _recording({"cpu_cores": 0.97}, {"cpu_cores": 0.2}))
    assert not found(compute_bound, _recording(FULL, {"cpu_cores": 0.2}))


def test_trainers_without_servers_are_bound_by_their_own_cores() -> None:
    reduces = {**cases.STEPS, "all_reduce_seconds": 0.1}
    steps = {"worker-0": reduces, "worker-1": reduces}
    (cause,) = found(compute_bound, cases.recording({"worker-0": FULL, "worker-1": FULL}, steps=steps))
    assert cause.what == "Trainers use 97% of their cores and do not wait for input."
    assert cause.evidence[0].text == (
        "2 of 2 trainers use 97% of their cores on average, and spend 10% of their time in all-reduce"
    )
    assert (cause.severity, cause.gain, cause.changes) == (Severity.INFO, None, ())
    alone = cases.recording({"worker-0": FULL})
    assert found(compute_bound, alone)[0].evidence[0].text == (
        "1 of 1 trainers use 97% of their cores on average"
    )
    assert not found(compute_bound, cases.recording({"worker-0": cases.TRAINER}))
