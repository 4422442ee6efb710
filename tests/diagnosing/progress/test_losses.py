"""Losses that are not a number."""

from __future__ import annotations

import dataclasses
from typing import Any

from support import cases
from support.cases import START, found

from paceline.diagnosing.progress.losses import loss_not_finite
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import StepReport

LOADS = {"ps-0": cases.SERVER, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}
TRAINING: dict[str, Any] = {
    "optimizer": {"name": "adagrad", "learning_rate": 0.5}, "wide_optimizer": {"name": "ftrl"},
}  # fmt: skip


def _losing(after: float, *, until: float = 1e9, only: str = "", **more: Any) -> Recording:
    """Return a recording in which losses are no numbers from so many seconds on."""

    def lose(report: StepReport) -> StepReport:
        lost = START + after < report.at <= START + until and only in str(report.replica)
        return dataclasses.replace(report, loss=None if lost else report.at - START)

    return cases.edited(cases.recording(LOADS, **more), steps=lose)


def test_a_loss_that_is_no_number_any_more_is_told_with_its_step() -> None:
    (cause,) = found(loss_not_finite, _losing(20, spec={"training": TRAINING}))
    assert cause.what == "The loss is not a number from about step 840 on (worker-0, worker-1)."
    assert cause.severity is Severity.ERROR
    assert [each.text for each in cause.evidence] == [
        "the last loss was 20",
        "20 reports of steps since have none",
    ]
    assert cause.changes == (
        FieldChange(path=("spec", "training", "optimizer", "learning_rate"), value=0.05),
        FieldChange(path=("spec", "training", "clip_norm"), value=10),
    )


def test_a_job_that_has_ended_so_is_told_of_too() -> None:
    (cause,) = found(loss_not_finite, _losing(5, phase=JobPhase.STOPPED))
    assert cause.next_steps[0].startswith("take a checkpoint from before")
    assert "in your script" in cause.next_steps[-1]


def test_one_that_never_was_a_number_is_known_of_the_training_library() -> None:
    (cause,) = found(loss_not_finite, _losing(0, spec={"training": {"clip_norm": 5}}))
    assert cause.evidence[0].text == "no loss before: it was never a number"
    assert cause.changes == ()


def test_scripts_that_tell_no_loss_lose_none() -> None:
    assert not found(loss_not_finite, _losing(0))
    # Only the chief tells one.
    assert not found(loss_not_finite, _losing(0, only="worker-1"))


def test_a_gap_or_two_reports_are_no_loss_of_it() -> None:
    assert not found(loss_not_finite, _losing(10, until=20))
    assert not found(loss_not_finite, _losing(28))
    assert found(loss_not_finite, _losing(27))


def test_one_trainer_alone_is_named() -> None:
    (cause,) = found(loss_not_finite, _losing(20, only="worker-1"))
    assert cause.subjects == ("worker-1",)


def test_a_next_attempt_begins_anew() -> None:
    recording = _losing(20)
    rows = [dataclasses.replace(row, attempt=2) for row in recording.replicas]

    def again(report: StepReport) -> StepReport:
        late = report.at > START + 26
        return dataclasses.replace(report, attempt=2, loss=0.4) if late else report

    again_well = cases.edited(dataclasses.replace(recording, replicas=rows), steps=again)
    assert not tuple(loss_not_finite.causes(cases.Case.of(again_well)))
