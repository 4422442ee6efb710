"""``paceline record``, and the verbs that take its file instead of a job."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from support import measured_runs
from support.filled_homes import fill

from paceline.control import states
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.traces import traced_steps
from paceline.model.traces.traced_steps import Event, Trace
from paceline.model.variables.variables import Variable
from paceline.services.local.state_dirs import Home
from paceline.stores import open_store, recordings
from paceline.training.tracing import trace_files, traffics

Paceline = Callable[..., Result]
EVENT = Event(
    step=1, process="ps-0", name="Gather", kind="Gather", sender=None, bytes=4, start_microseconds=1.0,
    microseconds=2.0,
)  # fmt: skip


@pytest.fixture
def measured(home: Home) -> Home:
    """A home with the run ``clicks``, with samples, steps and a trace."""
    recording = measured_runs.recording(seconds=30, directory=str(home.runs / "clicks"))
    state = states.initial(recording.run.spec)
    replicas = tuple(
        dataclasses.replace(row, phase=ReplicaPhase.SUCCEEDED, attempt=1) for row in state.replicas
    )
    with open_store(home.store_url) as store:
        store.create_run(recording.run, state)
        ended = dataclasses.replace(state, replicas=replicas, phase=JobPhase.SUCCEEDED)
        store.save_state("clicks", ended, at=measured_runs.START + 50)
        store.append_samples("clicks", recording.samples)
        store.append_step_reports("clicks", recording.steps)
        store.append_evaluations("clicks", recording.evaluations)
    run_dir = str(home.runs / "clicks")
    trace = Trace(trainer="worker-0", attempt=1, at=1e9, events=(EVENT,))
    trace_files.keep(trace, home.runs / "clicks" / traced_steps.FOLDER, traced_steps.name_at(1e9))
    traffics.write([Variable(name="ids", shape=(999, 16), sparse=True, step_bytes=5e3)], run_dir)
    return home


def test_a_file_is_looked_at_as_the_job_it_was_made_of(
    measured: Home, paceline: Paceline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = paceline("record", "clicks")
    assert made.exit_code == 0, made.stderr
    assert "clicks.parquet written: 196 samples, 60 step reports, 1 traces" in made.stderr
    assert "next: paceline why clicks.parquet" in made.stderr
    found = recordings.read(tmp_path / "clicks.parquet")
    assert [(trace.trainer, trace.events) for trace in found.traces] == [("worker-0", ())]
    assert found.plan is not None
    assert [(shard.name, shard.server) for shard in found.plan.shards] == [("ids/0", 0), ("ids/1", 1)]
    assert sum(found.plan.step_bytes() or ()) == pytest.approx(5e3)
    outputs = {}
    for name in ("clicks", "clicks.parquet"):
        shown = [paceline(verb, name, "-o", "json") for verb in ("top", "why")]
        assert [each.exit_code for each in shown] == [0, 0], shown
        report = paceline("report", name, "-o", "page.html", "--json", "-")
        assert report.exit_code == 0, report.stderr
        outputs[name] = [json.loads(each.stdout) for each in (*shown, report)]
        if name == "clicks":
            shutil.rmtree(measured.path)
    assert outputs["clicks"] == outputs["clicks.parquet"]
    page = paceline("top", "clicks.parquet")
    assert page.stdout.startswith("clicks  succeeded")
    assert "next: paceline why clicks.parquet" in page.stderr


def test_a_recording_that_would_be_too_large_has_longer_intervals(
    measured: Home, paceline: Paceline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paceline("record", "clicks", "-o", "all.parquet")
    every = recordings.read(tmp_path / "all.parquet")
    monkeypatch.setattr(recordings, "MOST_ROWS", 100)
    made = paceline("record", "clicks")
    assert made.exit_code == 0, made.stderr
    assert "measurements are combined into intervals of" in made.stderr
    found = recordings.read(tmp_path / "clicks.parquet")
    rows = len(found.samples) + len(found.steps) + len(found.evaluations)
    assert 50 <= rows <= 100
    assert found.evaluations == every.evaluations
    for name in ("samples", "steps"):
        few, many = getattr(found, name), getattr(every, name)
        assert [each.at for each in few] == sorted(each.at for each in few)
        assert {each.replica for each in few} == {each.replica for each in many}
        assert sum(each.interval_seconds for each in few) == sum(each.interval_seconds for each in many)
    assert sum(each.steps for each in found.steps) == sum(each.steps for each in every.steps)
    assert found.run.notes[-1] in made.stderr


def test_a_lost_job_is_shown_as_it_was(home: Home, paceline: Paceline, tmp_path: Path) -> None:
    fill(home, "clicks", phase=JobPhase.RUNNING, loads=(0.9, 0.1), steps=3)
    file = tmp_path / "then.parquet"
    assert paceline("record", "clicks", "-o", str(file)).exit_code == 0
    said = paceline("why", str(file)).stdout
    assert said.startswith("clicks is running")
    assert "a recording" in said
    assert "No supervisor watches it" in said
    assert paceline("top", str(file)).stdout.startswith("clicks  lost")


def test_what_is_no_recording_is_refused(home: Home, paceline: Paceline, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.parquet"
    wrong.write_text("hello")
    for verb in ("why", "top", "report"):
        assert paceline(verb, str(wrong)).exit_code == 2
        missing = paceline(verb, str(tmp_path / "missing.parquet"))
        assert missing.exit_code == 3
        assert "paceline record NAME makes one" in missing.stderr
    assert paceline("record", "missing").exit_code == 3


def test_a_file_becomes_a_job_again(
    measured: Home, paceline: Paceline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (measured.runs / "clicks" / "logs").mkdir()
    (measured.runs / "clicks" / "logs" / "worker-0.1.log").write_text("step 1\n")
    paceline("record", "clicks")
    made = paceline("import", "clicks.parquet")
    assert (made.stdout, made.exit_code) == ("clicks-2 imported\n", 0)
    assert "next: paceline why clicks-2" in made.stderr
    assert paceline("import", "clicks.parquet", "--name", "other").stdout == "other imported\n"
    assert paceline("logs", "other").stdout == "worker-0 | step 1\n"
    names = paceline("list", "-o", "name").stdout.split()
    assert sorted(names) == ["clicks", "clicks-2", "other"]
    first, again = (json.loads(paceline("top", name, "-o", "json").stdout) for name in ("clicks", "other"))
    assert again["examples_per_second"] == first["examples_per_second"]
    resumed = paceline("resume", "other")
    assert resumed.exit_code == 1
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    assert paceline("import", "bad.parquet").exit_code == 2
    assert paceline("import", "none.parquet").exit_code == 3
    assert paceline("import", "clicks.parquet", "--name", "../x").exit_code == 2
