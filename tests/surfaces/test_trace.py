"""``paceline trace``: the tables, the document, the file for Perfetto, and asking for it."""

import json
import threading
import time
from pathlib import Path

import pytest
from support import traced_jobs
from support.filled_homes import fill
from support.trace_files import LONG, NAME, trace, write

from paceline.agent.paceline_agent import profiler
from paceline.model.jobs.statuses import JobPhase
from paceline.model.traces import traced_steps
from paceline.services.observing import traces as services
from paceline.surfaces import perfetto


@pytest.fixture
def ended(home):
    run = fill(home, "clicks")
    write(run.directory, trace("worker-0"))
    write(run.directory, trace("worker-1"))
    return run


def test_the_tables_fit_80_columns_and_name_what_moves(paceline, ended):
    done = paceline("trace", "clicks")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "TRAINER   STEPS  STEP MS  INPUT WAIT  PULL  COMPUTE  PUSH  OTHER"
    assert lines[1].split() == ["worker-0", "1", "4.25", "-", "1.00", "2.50", "0.50", "0.25"]
    first = next(number for number, line in enumerate(lines) if line.startswith("VARIABLE")) + 1
    assert lines[first].split() == ["deep/vectors", "1", "ps-1", "pull", "391K", "56%", "40.0k"]
    assert "… 12 more (-o wide)" in lines
    longest = next(line for line in lines if line.startswith("ResourceSparseApply"))
    assert longest.split()[1:] == ["deep/vectors", "1", "ps-1", "2", "6000"]
    assert "perfetto.json in https://ui.perfetto.dev" in done.stderr


def test_wide_shows_everything(paceline, ended):
    done = paceline("trace", "clicks", "-o", "wide")
    assert LONG in done.stdout
    assert "weight19" in done.stdout


def test_the_document_has_units_and_the_file(paceline, ended):
    done = paceline("trace", "clicks", "-o", "json")
    document = json.loads(done.stdout)
    assert document["kind"] == "Trace"
    assert [each["trainer"] for each in document["trainers"]] == ["worker-0", "worker-1"]
    assert document["trainers"][0]["steps"][0]["input_wait_microseconds"] is None
    assert document["traffic"][0] == {
        "variable": "deep/vectors", "shard": 1, "server": "ps-1", "direction": "pull",
        "bytes": 400_000.0, "microseconds": 40_000.0,
    }  # fmt: skip
    events = json.loads(Path(document["perfetto_file"]).read_text())["traceEvents"]
    assert {"grads", "MatMul"} <= {event["name"] for event in events}


def test_all_processes_lie_on_one_clock():
    """worker-1's clock is ahead by 700; ps-1's is ahead of worker-0's by 200, so behind worker-1's by 500."""
    both = [trace("worker-0", offset=200.0), trace("worker-1", ahead=700.0, offset=-500.0)]
    document = perfetto.document(both)
    drawn = [event for event in document["traceEvents"] if event["ph"] == "X"]
    starts = {name: {event["ts"] for event in drawn if event["name"] == name} for name in ("MatMul", "grads")}
    assert starts == {"MatMul": {0.0}, "grads": {60.0}}
    lanes = {event["name"]: event["tid"] for event in drawn if event["pid"] == drawn[0]["pid"]}
    assert lanes["MatMul"] != lanes["Relu"]
    message = next(event for event in drawn if event["name"] == "grads")
    assert message["args"]["bytes"] == 640
    assert message["args"]["from"].startswith("worker-")


def test_a_corrupt_file_is_mentioned(paceline, ended):
    path = Path(ended.directory) / traced_steps.FOLDER / NAME / "worker-1.1.parquet"
    path.write_bytes(b"PAR1 nothing")
    done = paceline("trace", "clicks")
    assert done.exit_code == 0
    assert f"left out: {path} is no trace" in done.stderr
    assert "worker-1" not in done.stdout


def test_a_job_without_traces_says_how_to_get_them(paceline, home):
    fill(home, "clicks")
    done = paceline("trace", "clicks")
    assert done.exit_code == 3
    assert "clicks has no trace" in done.stderr
    assert "of a job that runs one is taken: paceline trace clicks" in done.stderr


def test_a_running_job_is_asked_and_awaited(paceline, home):
    """Both trainers answer as the training library does: they see the request and leave their files."""
    run = fill(home, "clicks", phase=JobPhase.RUNNING)
    request = Path(run.directory) / traced_steps.FOLDER / traced_steps.REQUEST
    Path(run.directory).mkdir(parents=True)

    def answer():
        deadline = time.monotonic() + 240
        while not request.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        name = request.read_text().strip()
        for trainer in ("worker-0", "worker-1"):
            write(run.directory, trace(trainer), name)

    trainers = threading.Thread(target=answer)
    trainers.start()
    done = paceline("trace", "clicks", "-o", "json")
    trainers.join()
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["trainers"]) == 2
    assert not request.exists()


def test_servers_are_profiled_where_no_session_is_traced(paceline, home, monkeypatch):
    monkeypatch.setattr("paceline.services.observing.traces.SESSION_SECONDS", 0.1)
    run = fill(home, "clicks", phase=JobPhase.RUNNING)
    profiled = []

    def answers(text, folder):
        if " profile " in text:
            profiled.append(int(text.split()[2]))
            traced_jobs.profile(folder)

    with traced_jobs.answering(run, answers):
        done = paceline("trace", "clicks", "-o", "json")
    assert done.exit_code == 0, done.output
    (worker,) = json.loads(done.stdout)["trainers"]
    assert worker["trainer"] == "worker-0"
    assert len(worker["steps"]) == 2
    # The other one made no step: the profiler looked at it for longer.
    assert profiled == [1000, 4000]
    assert "not in it: worker-1 made no whole step meanwhile" in done.stderr
    assert not (Path(run.directory) / traced_steps.FOLDER / traced_steps.REQUEST).exists()


def test_a_server_whose_profile_does_not_come_is_named(paceline, home, monkeypatch):
    """Its operations are not in the tables then, and nothing else would say so."""
    monkeypatch.setattr("paceline.services.observing.traces.SESSION_SECONDS", 0.1)
    monkeypatch.setattr("paceline.services.observing.traces.PROFILE_SECONDS", 0.1)
    run = fill(home, "clicks", phase=JobPhase.RUNNING)

    def answers(text, folder):
        if " profile " in text:
            traced_jobs.profile(folder, ("worker-0", "worker-1", "ps-0"))

    with traced_jobs.answering(run, answers):
        done = paceline("trace", "clicks", "-o", "json")
    assert done.exit_code == 0, done.output
    assert "not in it: what ps-1 did; the profiler there has not answered" in done.stderr


def test_an_agent_that_waits_for_its_profiler_is_waited_for():
    assert services.PROFILE_SECONDS > profiler.COLLECTING_SECONDS


def test_where_neither_sessions_nor_servers_can_be_traced_that_is_said_at_once(paceline, home):
    run = fill(home, "clicks", phase=JobPhase.RUNNING)

    def answers(text, folder):
        if " profile " in text:
            traced_jobs.refuse_profile(folder, "port 7: TensorFlow has no profiler before 2.4")
        else:
            traced_jobs.refuse(folder, "worker-0")

    with traced_jobs.answering(run, answers):
        done = paceline("trace", "clicks", "--timeout", "10m")
    assert done.exit_code == 1, done.output
    assert "clicks cannot be traced: its steps are made without a session" in done.stderr
    assert "TensorFlow has no profiler before 2.4" in done.stderr


def test_trainers_that_do_not_answer_are_not_awaited_for_ever(paceline, home):
    run = fill(home, "clicks", phase=JobPhase.RUNNING)
    Path(run.directory).mkdir(parents=True)
    done = paceline("trace", "clicks", "--timeout", "1s")
    assert done.exit_code == 5
    assert "no trainer of clicks has answered within 1 s" in done.stderr
    assert not (Path(run.directory) / traced_steps.FOLDER / traced_steps.REQUEST).exists()
