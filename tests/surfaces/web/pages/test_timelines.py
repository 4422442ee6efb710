"""What happened to a job and what was found in it, on one time line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from paceline.model.jobs.runs import JobEvent, SpecChange
from paceline.model.measures.recordings import Recording
from paceline.model.roles import ReplicaId, Role
from paceline.services.observing import diagnosis_runs
from paceline.stores import recordings
from paceline.surfaces.web.pages import timelines

RECORDED = Path(__file__).parents[4] / "benchmarks" / "diagnosis" / "recordings"


@pytest.fixture(scope="module")
def recording() -> Recording:
    return recordings.read(RECORDED / "ps-cpu-bound.gross.deepfm-large-plain-4.parquet")


def test_events_changes_and_findings_the_latest_first(recording: Recording) -> None:
    start = recording.run.submitted_at
    change = SpecChange(id=1, asked_at=start + 20, source="", before="", done_at=start + 25)
    found = timelines.entries(diagnosis_runs.of(recording), recording.events, [change])
    assert [each.at for each in found] == sorted((each.at for each in found), reverse=True)
    kinds = [each.kind for each in found]
    assert kinds.count("change") == 2
    finding = next(each for each in found if each.kind == "PS101")
    assert finding.severity is not None
    assert start < finding.at < start + 30  # When it was first seen, not when it was looked at.


def test_what_happens_to_many_at_once_is_one_entry(recording: Recording) -> None:
    look = diagnosis_runs.of(dataclasses.replace(recording, events=()))
    started = [
        JobEvent(
            at=100.0 + index / 100, kind="started", message="on 2 cores", attempt=1,
            replica=ReplicaId(Role.WORKER, index),
        )
        for index in range(200)
    ]  # fmt: skip
    later = dataclasses.replace(started[7], at=300.0, attempt=2, message="x" * 5000)
    found = [each for each in timelines.entries(look, [later, *started], []) if each.severity is None]
    assert [(each.at, each.kind, each.of) for each in found] == [
        (300.0, "started (attempt 2)", "worker-7"),
        (100.0, "started", "worker-0, worker-1, worker-10 + 197"),
    ]
    assert len(found[0].text) == timelines.MOST_CHARACTERS
    assert [each.is_marked for each in found] == [True, False]
