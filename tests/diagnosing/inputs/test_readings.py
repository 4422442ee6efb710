"""How much of its time a trainer waits for input."""

from __future__ import annotations

import pytest
from support import cases

from paceline.diagnosing.cases import Case
from paceline.diagnosing.inputs import readings


@pytest.mark.parametrize(("seconds", "share"), [(None, 0.0), (0.25, 0.25), (3.0, 1.0)])
def test_no_trainer_waits_longer_than_its_time(seconds: float | None, share: float) -> None:
    """A trainer of several threads may say that all of them waited."""
    steps = {"worker-0": cases.STEPS | {"input_wait_seconds": seconds}}
    recording = cases.recording({"ps-0": cases.SERVER, "worker-0": cases.TRAINER}, steps=steps)
    (trainer,) = Case.of(recording).trainers
    assert readings.waits(trainer) == pytest.approx(share)
