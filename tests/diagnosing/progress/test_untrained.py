"""Jobs that succeeded without a step."""

from __future__ import annotations

import dataclasses

import pytest
from support import cases
from support.cases import START, found

from paceline.diagnosing.progress.untrained import nothing_trained
from paceline.model.jobs.runs import JobEvent
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures.recordings import Recording
from paceline.model.roles import ReplicaId

LOADS = {"ps-0": cases.SERVER, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}
HELLO = "TensorFlow 2.21.0 on Python 3.11.7"


def ended(*said: tuple[str, str], phase: JobPhase = JobPhase.SUCCEEDED) -> Recording:
    events = tuple(
        JobEvent(at=START + 5, kind="instrumentation", message=message, replica=ReplicaId.parse(replica))
        for replica, message in said
    )
    return dataclasses.replace(cases.recording(LOADS, phase=phase), steps=(), events=events)


def test_trainers_that_load_tensorflow_and_make_no_step_are_told_of() -> None:
    (cause,) = found(nothing_trained, ended(("worker-0", HELLO), ("worker-1", HELLO)))
    assert cause.what == "worker-0, worker-1 loaded TensorFlow and made no step."
    assert cause.evidence[0].text == f"worker-0: {HELLO}"
    assert cause.next_steps[0] == (
        "compare the job names of the script with the roles of the job file: ps, worker"
    )


CHIEF = {"ps-0": cases.SERVER, "chief-0": cases.TRAINER, "worker-0": cases.TRAINER}


def begun(*, ended_at: float, phase: ReplicaPhase = ReplicaPhase.SUCCEEDED) -> Recording:
    """Return the recording of a job whose chief has ended without a step, while a worker waits."""
    events = (
        JobEvent(at=START + 5, kind="instrumentation", message=HELLO, replica=ReplicaId.parse("chief-0")),
        JobEvent(at=START + ended_at, kind="replica-exited", message="", replica=ReplicaId.parse("chief-0")),
    )
    rows = {"chief-0": {"phase": phase}}
    return cases.recording(CHIEF, rows=rows, steps={}, seconds=60, events=events)


def test_a_chief_that_ends_without_a_step_while_others_wait_is_told_of() -> None:
    (cause,) = found(nothing_trained, begun(ended_at=10))
    assert cause.what == (
        "chief-0 has ended without an error and without a step; worker-0 made none, either."
    )
    assert cause.subjects == ("chief-0", "worker-0")
    assert cause.next_steps[1] == "a script that looks for a master does not find one: here it is the chief"
    assert not found(nothing_trained, begun(ended_at=40)), "the worker may still begin"
    assert not found(nothing_trained, begun(ended_at=10, phase=ReplicaPhase.RUNNING))


def test_pytorch_is_named_as_what_was_loaded() -> None:
    (cause,) = found(nothing_trained, ended(("worker-0", "PyTorch 2.9.1 on Python 3.12.1")))
    assert cause.what == "worker-0 loaded PyTorch and made no step."


@pytest.mark.parametrize(
    "recording",
    [
        ended(),
        ended(("ps-0", HELLO)),
        ended(("worker-0", HELLO), ("worker-1", "its steps, made by sessions; loss: not seen")),
        ended(("worker-0", HELLO), ("worker-0", "tensorflow.python.x cannot be looked into: f takes y")),
        ended(("worker-0", HELLO), phase=JobPhase.FAILED),
        dataclasses.replace(ended(("worker-0", HELLO)), steps=cases.recording(LOADS).steps),
    ],
    ids=["not looked into", "only servers", "a trainer trained", "not all is seen", "failed", "steps"],
)
def test_what_is_not_known_or_not_so_is_not_told(recording: Recording) -> None:
    assert found(nothing_trained, recording) == ()
