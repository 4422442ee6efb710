"""Workers that sleep after their chief is ready."""

from __future__ import annotations

import pytest
from support import cases
from support.cases import START, found

from paceline.diagnosing.scripts.recovery_waits import recovery_wait
from paceline.model.measures.recordings import Recording

LOADS = {"ps-0": cases.SERVER, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}


def waited(seconds: float, *, until: float, chief_since: float, every: float = 30.0) -> Recording:
    """A job whose worker-1 waited for worker-0 up to a moment, in seconds from the start."""
    trained = {"worker-0": (int(chief_since), 60), "worker-1": (int(until), 60)}
    facts = {"session_wait_seconds": seconds, "recovery_wait_seconds": every}
    recording = cases.recording(LOADS, trained=trained, seconds=60)
    return cases.asking(recording, {"worker-1": facts}, at=START + until)


def test_a_worker_that_sleeps_though_the_chief_is_ready_is_told_of() -> None:
    (cause,) = found(recovery_wait, waited(30.5, until=34, chief_since=6))
    assert cause.subjects == ("worker-1",)
    assert cause.what == "worker-1 slept for up to 28s after the chief was ready."
    assert cause.evidence[1].text == "it looks for the variables every 30s"


@pytest.mark.parametrize(
    "recording",
    [
        waited(30.5, until=34, chief_since=32),
        waited(2.0, until=34, chief_since=6),
        waited(4.0, until=10, chief_since=6, every=1.0),
        cases.recording(LOADS),
    ],
    ids=["the chief was late", "a restart, all were there", "it looks often", "not seen"],
)
def test_who_waits_for_a_chief_that_is_late_is_not(recording: Recording) -> None:
    assert found(recovery_wait, recording) == ()


def test_nothing_is_said_where_no_other_trainer_was_seen() -> None:
    alone = cases.edited(
        waited(30.5, until=34, chief_since=6), steps=lambda each: each if each.replica.index else None
    )
    assert found(recovery_wait, alone) == ()
