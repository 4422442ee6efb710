"""Checkpoints, summaries and lists of places that are written more often than they are of use."""

from __future__ import annotations

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing.scripts.checkpoints import frequent_checkpoints
from paceline.diagnosing.scripts.log_placements import log_device_placement
from paceline.diagnosing.scripts.summaries import frequent_summaries
from paceline.model.explanations.findings import Severity
from paceline.model.measures.recordings import Recording

LOADS = {"ps-0": cases.SERVER, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}


def saving(share: float, every: float = 2.0, *, loads: dict[str, dict[str, float]] = LOADS) -> Recording:
    facts = {"checkpoint_share": share, "checkpoint_every_seconds": every}
    return cases.asking(cases.recording(loads), {"worker-0": facts})


def test_a_trainer_that_saves_for_half_of_its_time_could_make_twice_as_many_steps() -> None:
    (cause,) = found(frequent_checkpoints, saving(0.5))
    assert (cause.severity, cause.subjects) == (Severity.WARNING, ("worker-0",))
    assert cause.evidence[0].text == (
        "worker-0 saved one every 2.0s, and made no step for 50% of the time between the first and the last"
    )
    # It makes half of all steps, so twice as many of its own are half as many more.
    assert cause.gain is not None
    assert 1 < cause.gain.low <= cause.gain.high <= 1.501


def test_what_hardly_matters_is_a_remark_and_less_is_nothing() -> None:
    (cause,) = found(frequent_checkpoints, saving(0.06))
    assert (cause.severity, cause.gain) == (Severity.INFO, None)
    assert found(frequent_checkpoints, saving(0.01)) == ()
    assert found(frequent_checkpoints, cases.recording(LOADS)) == ()


def summarizing(every: float, *, own_steps: int = 40) -> Recording:
    steps = {"worker-0": {**cases.STEPS, "steps": own_steps}, "worker-1": cases.STEPS}
    recording = cases.recording(LOADS, steps=steps)
    facts = {"summary_every_steps": every, "summary_bytes": 5e6}
    return cases.asking(recording, {"worker-0": facts})


def test_summaries_in_each_step_of_a_trainer_that_is_slower_are_a_warning() -> None:
    (cause,) = found(frequent_summaries, summarizing(1, own_steps=20))
    assert (cause.severity, cause.gain) == (Severity.WARNING, None)
    assert cause.what == "worker-0 writes summaries every 1 steps."
    assert cause.evidence[1].text == "worker-0 makes 20.0 steps a second, the others 40.0"


def test_those_that_hold_nothing_up_are_a_remark() -> None:
    (cause,) = found(frequent_summaries, summarizing(2))
    assert cause.severity is Severity.INFO
    assert found(frequent_summaries, summarizing(50)) == ()


@pytest.mark.parametrize("logs", [True, False])
def test_places_that_are_printed(logs: bool) -> None:
    facts = {"worker-1": {"log_device_placement": True}} if logs else {}
    causes = found(log_device_placement, cases.asking(cases.recording(LOADS), facts))
    assert [each.subjects for each in causes] == [("worker-1",)] * logs
