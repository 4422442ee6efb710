"""Looks at jobs are cheap: only what is new is read, and files that stay the same are read once."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import measured_runs
from support.measured_runs import START

from paceline.control import states
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.traces import traced_steps
from paceline.model.traces.traced_steps import Split, Trace
from paceline.model.variables.variables import Variable
from paceline.services.local import state_dirs
from paceline.services.local.jobs import Jobs
from paceline.services.observing import diagnosis_runs, recordings
from paceline.stores import open_store

SPLIT = Split(
    step=1, start_at=START, input_wait_microseconds=0.0, pull_microseconds=8e5, compute_microseconds=2e5,
    push_microseconds=0.0, other_microseconds=0.0,
)  # fmt: skip
NOW = START + 300


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    """The job ``clicks``, which has run for 300 s; worker-1 has said nothing for the last 250."""
    home = state_dirs.Home.from_environment({"PACELINE_HOME": str(tmp_path)})
    made = measured_runs.recording(
        seconds=270, skew=4.0, phase=JobPhase.RUNNING, finished_at=None, auc=None,
        directory=str(tmp_path / "runs" / "clicks"),
    )  # fmt: skip
    (tmp_path / "runs" / "clicks").mkdir(parents=True)
    state = states.initial(made.run.spec)
    running = tuple(
        dataclasses.replace(each, phase=ReplicaPhase.RUNNING, attempt=1) for each in state.replicas
    )
    with open_store(home.store_url) as store:
        store.create_run(made.run, state)
        store.save_state(
            "clicks", dataclasses.replace(state, phase=JobPhase.RUNNING, replicas=running), at=START
        )
        store.append_samples("clicks", made.samples)
        silent = [each for each in made.steps if each.replica.index == 0 or each.at < START + 50]
        store.append_step_reports("clicks", silent)
        store.append_events("clicks", made.events)
        found = Jobs(home, store, clock=lambda: NOW)
        monkeypatch.setattr(Jobs, "is_lost", lambda self, run: False)
        yield found


def test_a_recording_from_a_moment_on_has_the_latest_word_of_each_replica(jobs: Jobs) -> None:
    whole, late = jobs.recording("clicks"), jobs.recording("clicks", since=NOW - 100)
    assert [each for each in whole.samples if each.at >= NOW - 100] == late.samples
    assert len(late.samples) < len(whole.samples)
    first, *rest = late.steps
    assert (str(first.replica), first.at) == ("worker-1", START + 49)
    assert all(each.at >= NOW - 100 for each in rest)
    assert list(late.events) == list(whole.events)


def test_a_look_finds_what_a_whole_recording_has(jobs: Jobs) -> None:
    found = diagnosis_runs.Looker(jobs, "clicks").look()
    assert [cause.name for cause in found.explanation.causes][:1] == ["hot-ps"]
    assert "giant-variable" in found.unjudged
    assert "hot-ps" not in found.unjudged
    assert min(each.at for each in found.recording.samples) >= NOW - diagnosis_runs.REACH_SECONDS


def test_files_are_read_again_when_they_change(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    from paceline.sources import traces as sources
    from paceline.training.tracing import trace_files, traffics

    folder = Path(jobs.get("clicks").directory)
    read: list[str] = []
    original = sources.read

    def counted(run: Path, name: str) -> sources.TraceReading:
        read.append(name)
        return original(run, name)

    monkeypatch.setattr(sources, "read", counted)
    looker = diagnosis_runs.Looker(jobs, "clicks")
    assert looker.look().recording.plan is None
    trace = Trace(trainer="worker-0", attempt=1, at=START + 90, splits=(SPLIT,))
    trace_files.keep(trace, folder / traced_steps.FOLDER, traced_steps.name_at(START + 90))
    traffics.write([Variable(name="ids", shape=(999, 16), sparse=True, step_bytes=5e3)], str(folder))
    for _ in range(3):
        seen = looker.look().recording
        assert [each.trainer for each in seen.traces] == ["worker-0"]
        assert seen.plan is not None
    assert len(read) == 1
    other = dataclasses.replace(trace, trainer="worker-1")
    trace_files.keep(other, folder / traced_steps.FOLDER, traced_steps.name_at(START + 90))
    traffics.write([Variable(name="more", shape=(999, 16), sparse=True, step_bytes=5e3)], str(folder))
    os.utime(folder / traced_steps.VARIABLES, (START, START))
    seen = looker.look().recording
    assert [each.trainer for each in seen.traces] == ["worker-0", "worker-1"]
    assert seen.plan is not None
    assert [each.name for each in seen.plan.variables] == ["more"]
    assert len(read) == 2


def test_far_files_are_asked_for_now_and_then() -> None:
    kept = recordings.RunFilesCache()
    seconds = kept.FETCH_SECONDS
    assert [kept.are_old(at) for at in (0.0, 1.0, seconds - 1, seconds, seconds + 1)] == [
        True, False, False, True, False,
    ]  # fmt: skip


def test_looks_are_no_more_often_than_they_should_be() -> None:
    now, takes = 0.0, 0.5
    taken: list[float] = []

    def look() -> int:
        nonlocal now
        taken.append(now)
        now += takes
        return len(taken)

    current = diagnosis_runs.now_and_then(look, lambda: now)
    seen = []
    for _ in range(8):
        seen.append(current())
        now += 2.0
    assert taken == [0.0, 6.5, 13.0]
    assert seen == [1, 1, 1, 2, 2, 2, 3, 3]
    assert diagnosis_runs.pause_seconds(10.0) == pytest.approx(
        50.0
    )  # So that looking is a fifth of the time at most.
    assert diagnosis_runs.pause_seconds(0.1, confirms=True) < diagnosis_runs.pause_seconds(0.1)


def test_traces_that_cannot_be_read_without_pyarrow_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "traces" / "2026-01-02T03-04-05.678Z"
    folder.mkdir(parents=True)
    (folder / "worker-0.1.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert recordings.RunFilesCache().traces(tmp_path) == ()
