"""Waiting is seen while it lasts, though no step ends: trainers say what they do."""

from __future__ import annotations

import dataclasses

from support import cases
from support.cases import START, found

from paceline.diagnosing.diagnoses import diagnose
from paceline.diagnosing.progress.hangs import hang
from paceline.diagnosing.progress.standing_trainers import standing_trainers
from paceline.diagnosing.situations import Situation
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.runs import STANDING, JobEvent
from paceline.model.measures.recordings import Recording
from paceline.model.roles import ReplicaId

IDLE = {"cpu_cores": 0.01, "cpu_limit_cores": 1.0}
LOADS = {"ps-0": cases.SERVER, "worker-0": IDLE, "worker-1": IDLE}
TRAINED = {"worker-0": (0, 40), "worker-1": (0, 40)}
BUSY = {"cpu_cores": 0.9, "cpu_limit_cores": 1.0}


def said(recording: Recording, **doing: str) -> Recording:
    events = tuple(
        JobEvent(
            at=START + 40,
            kind=STANDING,
            message=message,
            replica=ReplicaId.parse(name.replace("_", "-")),
            attempt=1,
        )
        for name, message in doing.items()
    )
    return dataclasses.replace(recording, events=events)


def test_trainers_that_never_made_a_step_and_wait_for_input_are_told_of() -> None:
    recording = said(
        cases.recording(LOADS, steps={}, seconds=80),
        worker_0="input: ", worker_1="between: train.py:12 (load)",
    )  # fmt: skip
    (cause,) = found(standing_trainers, recording)
    assert cause.what == "worker-0, worker-1 have waited for up to 40s for input."
    assert [each.text for each in cause.evidence] == [
        "worker-0 waits for input", "worker-1 waits between two steps, in the script, at train.py:12 (load)",
    ]  # fmt: skip
    situation = Situation.of(recording.run, recording.replicas, recording.events, now=recording.at)
    assert "nothing is wrong" not in diagnose(recording, situation).summary


def test_who_made_a_step_since_then_does_not_stand() -> None:
    recording = said(cases.recording(LOADS, seconds=80), worker_0="step: ")
    assert not found(standing_trainers, recording)


def test_others_that_wait_for_an_evaluation_are_only_remarked() -> None:
    recording = said(
        cases.recording(LOADS | {"worker-0": BUSY}, seconds=80, trained=TRAINED),
        worker_0="computing: train.py:80 (evaluate)", worker_1="step: ",
    )  # fmt: skip
    (cause,) = found(standing_trainers, recording)
    assert cause.severity is Severity.INFO
    assert cause.what.endswith("another trainer computes meanwhile.")


def test_a_long_evaluation_of_a_process_that_computes_is_no_hang() -> None:
    busy = cases.recording(LOADS | {"worker-0": BUSY}, seconds=400, trained=TRAINED)
    assert found(hang, busy)  # Nothing is known of what it does.
    assert not found(hang, said(busy, worker_0="computing: train.py:80 (evaluate)", worker_1="step: "))
    assert found(hang, said(busy, worker_0="between: ", worker_1="step: "))
