"""Workers that never train."""

from __future__ import annotations

import dataclasses
from typing import Any

from support import cases
from support.cases import found

from paceline.diagnosing.trainers.idle_workers import idle_workers
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures.recordings import Recording

IDLE = {"cpu_cores": 0.02, "cpu_limit_cores": 1.0}


def _recording(own: dict[str, Any] = IDLE, **more: Any) -> Recording:
    loads = {"ps-0": cases.SERVER, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER, "worker-2": own}
    steps = dict.fromkeys(("worker-0", "worker-1"), cases.STEPS)
    return cases.recording(loads, **{"steps": steps, **more})


def test_one_without_steps_is_found() -> None:
    (cause,) = found(idle_workers, _recording())
    assert cause.what == "worker-2 has nothing to do: of 3 trainers only 2 have trained."
    assert (cause.severity, cause.subjects) == (Severity.WARNING, ("worker-2",))
    assert cause.changes == (FieldChange(path=("spec", "roles", "worker", "replicas"), value=2),)
    assert cause.evidence[0].text == "no step of worker-2, and 60 reports of steps of the others"
    assert cause.evidence[1].text.startswith("if all had work: x 1.")
    assert "at least 3 files or shards" in cause.next_steps[0]


def test_one_that_ended_at_once_is_found() -> None:
    rows = {"worker-2": {"phase": ReplicaPhase.SUCCEEDED}}
    assert found(idle_workers, _recording(rows=rows))
    assert found(idle_workers, _recording(phase=JobPhase.SUCCEEDED))


def test_all_that_train_are_not_idle() -> None:
    assert not found(idle_workers, _recording(cases.TRAINER, steps=None))


def test_one_that_works_and_tells_no_steps_is_not_idle() -> None:
    assert not found(idle_workers, _recording(cases.TRAINER))
    assert not found(idle_workers, _recording(cases.TRAINER, phase=JobPhase.SUCCEEDED))


def test_one_that_still_starts_is_not_idle() -> None:
    # The others took ten seconds to start; this one has had twelve.
    recording = _recording(trained={"worker-0": (10, 30), "worker-1": (10, 30)})
    late = [
        each for each in recording.samples if str(each.replica) != "worker-2" or each.at > cases.START + 18
    ]
    assert not found(idle_workers, dataclasses.replace(recording, samples=late))
    assert found(idle_workers, recording)


def _scaled(second: int, own: dict[str, Any] = IDLE) -> Recording:
    """Return the last two minutes of a job that has run for an hour, to which a worker was added."""
    recording = _recording(own, seconds=120)
    samples = [
        each
        for each in recording.samples
        if str(each.replica) != "worker-2" or each.at > cases.START + second
    ]
    run = dataclasses.replace(recording.run, started_at=cases.START - 3600, submitted_at=cases.START - 3600)
    return dataclasses.replace(recording, samples=samples, run=run)


def test_one_that_was_just_added_to_a_job_is_not_idle() -> None:
    """How long the others took to start is not known: their first samples are those of the recording."""
    assert not found(idle_workers, _scaled(100))
    assert found(idle_workers, _scaled(20)), "it has had more than a minute and a half"
    assert found(idle_workers, _scaled(0)), "it is as old as the others"


def test_one_that_was_added_takes_as_long_as_others_that_were() -> None:
    loads = {name: cases.TRAINER for name in ("worker-0", "worker-1")} | {"worker-2": IDLE}
    recording = cases.recording(
        loads, steps={"worker-1": cases.STEPS}, trained={"worker-1": (40, 120)}, seconds=120
    )
    run = dataclasses.replace(recording.run, started_at=cases.START - 3600)

    def since(second: int) -> Recording:
        begins = {"worker-1": 20, "worker-2": second}
        samples = [
            each for each in recording.samples if each.at > cases.START + begins.get(str(each.replica), 0)
        ]
        return dataclasses.replace(recording, samples=samples, run=run)

    # The worker before it took 20 seconds: this one may take 33.
    assert not found(idle_workers, since(95))
    assert found(idle_workers, since(80))


def test_one_that_computes_since_it_began_is_not_idle() -> None:
    """Its samples cover a part of the time alone."""
    own = cases.TRAINER | {"cpu_cores": 0.6 * cases.TRAINER["cpu_cores"]}
    recording = _recording(own)
    late = [
        each for each in recording.samples if str(each.replica) != "worker-2" or each.at > cases.START + 26
    ]
    assert not found(idle_workers, dataclasses.replace(recording, samples=late))


def test_a_coordinator_has_others_make_its_steps() -> None:
    """Before, the chief of a ClusterCoordinator was said to have nothing to do."""
    loads = {"ps-0": cases.SERVER, "chief-0": IDLE, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}
    steps = dict.fromkeys(("worker-0", "worker-1"), cases.STEPS)
    recording = cases.recording(loads, steps=steps)
    assert found(idle_workers, recording)
    assert not found(idle_workers, cases.asking(recording, {"chief-0": {"coordinates": True}}))


def test_a_worker_that_sleeps_until_it_looks_for_the_chief_is_not_idle() -> None:
    """It looks every 30 seconds; before, it was said to have nothing to do meanwhile."""
    facts = {"recovery_wait_seconds": 30}
    assert not found(idle_workers, cases.asking(_recording(), {"worker-2": facts}))
    assert found(idle_workers, cases.asking(_recording(), {"worker-2": facts | {"session_wait_seconds": 3}}))
    assert found(idle_workers, cases.asking(_recording(seconds=70), {"worker-2": facts})), "it never woke"


def test_one_that_failed_or_waits_for_its_start_is_not_idle() -> None:
    for phase in (ReplicaPhase.FAILED, ReplicaPhase.PENDING, ReplicaPhase.STARTING):
        assert not found(idle_workers, _recording(rows={"worker-2": {"phase": phase}}))


def test_one_that_had_steps_once_is_not_idle() -> None:
    steps = {f"worker-{index}": cases.STEPS for index in range(3)}
    assert not found(idle_workers, _recording(steps=steps, trained={"worker-2": (0, 4)}, seconds=60))


def test_one_that_was_not_measured_is_not_judged() -> None:
    recording = _recording()
    unseen = [each for each in recording.samples if str(each.replica) != "worker-2"]
    assert not found(idle_workers, dataclasses.replace(recording, samples=unseen))
    assert not found(idle_workers, _recording({"cpu_cores": None}))
