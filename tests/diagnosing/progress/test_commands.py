"""Commands that flood their log, or go on after their trainer."""

from __future__ import annotations

import dataclasses

import pytest
from support import cases
from support.cases import START, found

from paceline.diagnosing.diagnoses import diagnose
from paceline.diagnosing.progress.commands import left_behind, log_flood, misread_reports, trainer_ended
from paceline.diagnosing.situations import Situation
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.runs import JobEvent
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.recordings import Recording
from paceline.model.roles import ReplicaId

LOADS = {"ps-0": cases.SERVER, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}
FLOOD = "118 MiB of output in 120 s"
GONE = "process 12, which trained, has ended; the command goes on"


def said(kind: str, message: str, *replicas: str, at: float, phase: JobPhase = JobPhase.RUNNING) -> Recording:
    events = tuple(
        JobEvent(at=at, kind=kind, message=message, replica=ReplicaId.parse(each)) for each in replicas
    )
    return dataclasses.replace(cases.recording(LOADS, phase=phase), events=events)


def test_a_flood_is_told_of() -> None:
    (cause,) = found(log_flood, said("output", FLOOD, "worker-0", at=START + 60))
    assert cause.what == "worker-0 floods its log."
    assert cause.evidence[0].text == f"worker-0: {FLOOD}"
    (cause,) = found(log_flood, said("output", FLOOD, "worker-0", "worker-1", at=START + 60))
    assert cause.what == "worker-0, worker-1 flood their logs."


def test_reports_that_are_not_understood_are_told_of() -> None:
    message = 'step is a text, and read as a number: "12" (10 times so far)'
    (cause,) = found(misread_reports, said("misread", message, "worker-1", at=START + 60))
    assert cause.what == ("Reports of worker-1 have fields that are no numbers, or no fields that are known.")
    assert cause.evidence[0].text == f"worker-1: {message}"
    assert not found(misread_reports, cases.recording(LOADS))


@pytest.mark.parametrize(
    ("phase", "what"),
    [
        (JobPhase.RUNNING, "The process that trained has ended, and the command of worker-0 goes on."),
        (
            JobPhase.SUCCEEDED,
            "The command of worker-0 went on after the process that trained had ended: how that ended is not "
            "known.",
        ),
    ],
)
def test_a_command_that_outlives_its_trainer_is_told_of(phase: JobPhase, what: str) -> None:
    (cause,) = found(trainer_ended, said("outlived", GONE, "worker-0", at=1e12, phase=phase))
    assert cause.what == what


@pytest.mark.parametrize(
    "recording",
    [
        cases.recording(LOADS),
        said("outlived", GONE, "worker-0", at=START),  # It has trained since.
        said("outlived", GONE, "worker-0", at=1e12, phase=JobPhase.FAILED),  # That has a cause of its own.
    ],
    ids=["nothing said", "another trainer", "failed"],
)
def test_what_is_not_so_is_not_told(recording: Recording) -> None:
    assert found(trainer_ended, recording) == ()
    assert found(log_flood, recording) == ()


def test_a_job_that_left_a_process_behind_is_no_plain_success() -> None:
    message = "1 process still ran when the command ended, and was ended with it: python train.py"
    recording = said("left", message, "worker-0", at=START + 1, phase=JobPhase.SUCCEEDED)
    assert not found(left_behind, recording)  # It was of another attempt.
    events = tuple(dataclasses.replace(each, attempt=1) for each in recording.events)
    recording = dataclasses.replace(recording, events=events)
    (cause,) = found(left_behind, recording)
    assert cause.what == "Processes of worker-0 still ran when the command ended, and were ended."
    assert cause.evidence[0].text == f"worker-0: {message}"
    situation = Situation.of(recording.run, recording.replicas, recording.events, now=recording.at)
    assert "nothing is wrong" not in diagnose(recording, situation).summary
    assert cause.severity is Severity.WARNING
    (cause,) = found(left_behind, dataclasses.replace(recording, steps=()))
    assert cause.severity is Severity.ERROR
