"""Workers whose sessions see every other worker."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing.scripts.device_filters import no_device_filters
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.statuses import ReplicaPhase
from paceline.model.measures.recordings import Recording

LOADS = {"ps-0": cases.SERVER, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}
NONE, SOME = {"device_filters": False}, {"device_filters": True}


def test_workers_without_device_filters_are_told_of() -> None:
    recording = cases.asking(cases.recording(LOADS), {"worker-0": NONE, "worker-1": NONE, "ps-0": NONE})
    (cause,) = found(no_device_filters, recording)
    assert (cause.severity, cause.subjects, cause.gain) == (Severity.INFO, ("worker-0", "worker-1"), None)
    assert cause.evidence[0].text == "seen in the script of worker-0, worker-1: device_filters: no"


@pytest.mark.parametrize(
    "facts",
    [{}, {"worker-0": SOME, "worker-1": SOME}, {"worker-0": NONE, "worker-1": SOME}],
    ids=["not seen", "filters", "one graph for all"],
)
def test_who_has_them_or_is_alone_is_not(facts: dict[str, dict[str, bool]]) -> None:
    assert found(no_device_filters, cases.asking(cases.recording(LOADS), facts)) == ()


def ended(seconds: int = 60, **more: Any) -> Recording:
    """A job whose worker-0 has made its steps and ended; worker-1 has asked for its session at the start."""
    rows = {"worker-0": {"phase": ReplicaPhase.SUCCEEDED}}
    recording = cases.recording(LOADS, rows=rows, steps={"worker-0": cases.STEPS}, seconds=seconds, **more)
    return cases.asking(recording, {"worker-0": NONE, "worker-1": NONE})


def test_a_worker_that_waits_for_one_that_has_ended_waits_for_ever() -> None:
    (cause,) = found(no_device_filters, ended())
    assert (cause.severity, cause.subjects) == (Severity.ERROR, ("worker-1", "worker-0"))
    assert cause.what == (
        "worker-1 cannot begin: without device filters a session needs every worker, and worker-0 is not "
        "there."
    )
    assert [each.text for each in cause.evidence[:2]] == [
        "worker-1 asked for a session 1m00s ago, and has made no step",
        "worker-0: succeeded",
    ]


def test_it_is_no_error_while_a_session_may_still_be_made_or_once_it_was() -> None:
    (cause,) = found(no_device_filters, ended(seconds=10))
    assert cause.severity is Severity.INFO
    both = ended()
    trains = cases.recording(LOADS, rows={"worker-0": {"phase": ReplicaPhase.SUCCEEDED}}, seconds=60)
    (cause,) = found(no_device_filters, dataclasses.replace(both, steps=trains.steps))
    assert cause.severity is Severity.INFO
