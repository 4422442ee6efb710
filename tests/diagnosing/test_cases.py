"""Which stretch of time of a job is judged."""

from __future__ import annotations

import dataclasses

import pytest
from support import cases

from paceline.diagnosing.cases import LEAST_SECONDS, WINDOW_SECONDS, Case
from paceline.model.jobs.runs import ADJUSTED, RESIZED, JobEvent
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.recordings import Recording

LOADS = {"ps-0": cases.SERVER, "worker-0": cases.TRAINER}


def resized(phase: JobPhase, *before_end: float, kind: str = RESIZED) -> Recording:
    found = cases.recording(LOADS, seconds=90, phase=phase)
    events = tuple(JobEvent(at=cases.START + 90 - each, kind=kind, message="") for each in before_end)
    return dataclasses.replace(found, events=events)


@pytest.mark.parametrize("phase", [JobPhase.RUNNING, JobPhase.SUCCEEDED])
def test_what_came_after_the_last_resize_is_judged(phase: JobPhase) -> None:
    case = Case.of(resized(phase, 80.0, 20.0))
    assert (case.window.since, case.window.until) == (cases.START + 70, cases.START + 90)
    assert len(case.samples_by_replica[case.servers[0].replica]) == 20


@pytest.mark.parametrize("phase", [JobPhase.RUNNING, JobPhase.SUCCEEDED])
def test_a_resize_of_just_now_says_too_little(phase: JobPhase) -> None:
    whole = Case.of(resized(phase)).window
    assert Case.of(resized(phase, LEAST_SECONDS.default / 2)).window == whole
    assert whole.until - whole.since == (WINDOW_SECONDS.default if phase is JobPhase.RUNNING else 90)


def test_what_was_given_for_a_time_is_no_other_size() -> None:
    case = Case.of(resized(JobPhase.SUCCEEDED, 20.0, kind=ADJUSTED))
    assert case.window == Case.of(resized(JobPhase.SUCCEEDED)).window
