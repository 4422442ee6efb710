"""Training that began anew after a restart."""

from __future__ import annotations

import dataclasses

import pytest
from support import cases
from support.cases import START, found

from paceline.diagnosing.progress.restarts import trained_anew
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.runs import SEEN, JobEvent
from paceline.model.jobs.statuses import ReplicaPhase
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import StepReport
from paceline.model.roles import ReplicaId

LOADS = {"ps-0": cases.SERVER, "chief-0": cases.TRAINER, "worker-0": cases.TRAINER}
CHIEF = ReplicaId.parse("chief-0")
EXIT = JobEvent(at=START + 30, kind="replica-exited", message="exit code 1", replica=CHIEF)
#: The chief was started again; the worker has made its steps meanwhile.
ROWS = {"chief-0": {"attempt": 2, "restarts": 1}, "worker-0": {"phase": ReplicaPhase.SUCCEEDED}}


def again(begin: int, *, rows: dict[str, dict[str, object]] | None = None, says: str = "") -> Recording:
    """Return the recording of a job whose chief goes on at a step from the 40th second on."""

    def step(report: StepReport) -> StepReport | None:
        second = report.at - START
        if second <= 30:
            return report
        if report.replica != CHIEF or second <= 40:
            return None
        return dataclasses.replace(report, attempt=2, step=begin + round(second - 40) * 10)

    said = JobEvent(at=START + 5, kind=SEEN, message=says or "its steps", replica=CHIEF)
    recording = cases.recording(LOADS, rows=ROWS if rows is None else rows, seconds=60, events=(said, EXIT))
    return cases.edited(recording, steps=step)


def test_a_chief_that_begins_at_step_0_beside_a_worker_that_is_done_is_told_of() -> None:
    (cause,) = found(trained_anew, again(0))
    assert cause.what == (
        "chief-0 was started again, and training began anew: 1,200 steps are lost; worker-0 is done."
    )
    assert cause.severity is Severity.WARNING
    assert [each.text for each in cause.evidence] == [
        "chief-0 ended: exit code 1", "worker-0 was at step 1,200; then chief-0 was at step 10",
    ]  # fmt: skip
    assert "checkpoint_dir" in cause.next_steps[0]


def test_who_goes_on_from_a_checkpoint_loses_little() -> None:
    assert not found(trained_anew, again(1000))


def test_without_a_restart_it_is_something_else() -> None:
    assert not found(trained_anew, again(0, rows={}))
    worker = {"worker-0": {"attempt": 2, "restarts": 1}}
    assert not found(trained_anew, again(0, rows=worker))


@pytest.mark.parametrize(
    "message",
    [
        "its steps, made by sessions; loss: mean:0; global step: not seen; batch: fed",
        "its steps, made by SGD; batches: not seen; gradients: its own; global step: not seen",
    ],
)
def test_own_steps_of_a_script_without_a_global_step_say_nothing(message: str) -> None:
    assert not found(trained_anew, again(0, says=message))


def test_what_was_made_up_for_is_a_remark() -> None:
    recording = again(0)
    last = dataclasses.replace(recording.steps[-1], step=1300)
    recording = dataclasses.replace(recording, steps=[*recording.steps, last])
    (cause,) = found(trained_anew, recording)
    assert cause.severity is Severity.INFO
