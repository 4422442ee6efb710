"""The parts that need no TensorFlow: waiting for modules, counting, reporting, guarding."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from paceline.instrumentation.paceline_instrumentation import (
    eager,
    graph_facts,
    graphs,
    guarding,
    inputs,
    loading,
    models,
    patching,
    reporting,
    saving,
    servers,
    sessions,
    signatures,
    stepping,
    tracebacks,
    traces,
    wiring,
)
from paceline.model.traces import traced_steps as names


@pytest.fixture
def reporter(tmp_path):
    return reporting.Reporter(str(tmp_path / "reports.jsonl"))


@pytest.fixture
def steps(reporter, monkeypatch):
    made = stepping.Steps(reporter, guarding.Guard(reporter))
    monkeypatch.setattr(made._standing, "start", lambda: None)  # Its thread goes by another clock.
    return made


def lines(folder: Path) -> list[dict]:
    path = folder / "reports.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def age(path: Path, seconds: float) -> None:
    """Let a file be older."""
    then = time.time() - seconds
    os.utime(path, (then, then))


# --- Modules ------------------------------------------------------------------------------------------


def test_what_is_waited_for_is_what_is_wrapped(tmp_path, monkeypatch):
    monkeypatch.setattr(tracebacks, "connect", lambda: None)
    instrument = patching.Instrument({"PACELINE_REPORT_FILE": str(tmp_path / "reports.jsonl")})
    assert set(instrument._patches) == {*wiring.MODULES, *wiring.KERAS, *wiring.TWICE}


def test_a_module_is_acted_on_once_and_has_its_own_loader(tmp_path, monkeypatch):
    (tmp_path / "watched_module.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = []
    watch = loading.ModuleWatch()
    watch.when_loaded("watched_module", lambda module: seen.append(module.value))
    try:
        module = importlib.import_module("watched_module")
        assert seen == [1]
        assert type(module.__loader__).__name__ == "SourceFileLoader"
        assert module.__spec__.loader is module.__loader__
        assert watch not in sys.meta_path
        importlib.reload(module)
        assert seen == [1]
    finally:
        sys.modules.pop("watched_module", None)
        watch.end()


def test_one_that_was_loaded_before_is_acted_on_at_once():
    seen = []
    watch = loading.ModuleWatch()
    watch.when_loaded("json", lambda module: seen.append(module.__name__))
    assert seen == ["json"]
    assert watch not in sys.meta_path


def test_an_action_that_fails_and_a_module_that_is_missing_are_no_concern_of_the_import(
    tmp_path, monkeypatch
):
    (tmp_path / "watched_module_2.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    watch = loading.ModuleWatch()
    watch.when_loaded("watched_module_2", lambda module: 1 / 0)
    watch.when_loaded("watched_module_3", lambda module: None)
    try:
        assert importlib.import_module("watched_module_2").value == 1
        with pytest.raises(ModuleNotFoundError, match="watched_module_3"):
            importlib.import_module("watched_module_3")
        assert importlib.util.find_spec("watched_module_3") is None
    finally:
        sys.modules.pop("watched_module_2", None)
        watch.end()


def test_a_module_that_fails_raises_its_own_error(tmp_path, monkeypatch):
    (tmp_path / "watched_module_4.py").write_text("raise KeyError('own')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    watch = loading.ModuleWatch()
    watch.when_loaded("watched_module_4", lambda module: None)
    try:
        with pytest.raises(KeyError, match="own"):
            importlib.import_module("watched_module_4")
    finally:
        watch.end()


@pytest.mark.parametrize("is_collecting", [True, False])
@pytest.mark.parametrize("end", ["", "raise KeyError('own')\n"])
def test_the_collector_is_off_only_while_a_large_module_loads(is_collecting, end, tmp_path, monkeypatch):
    (tmp_path / "watched_module_5.py").write_text(
        "import sys, gc, watched_module_6\nsys.seen.append(gc.isenabled())\n" + end
    )
    (tmp_path / "watched_module_6.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "seen", [], raising=False)
    watch = loading.ModuleWatch()
    for name in ("watched_module_5", "watched_module_6"):
        watch.load_without_collections(name)
    try:
        if not is_collecting:
            gc.disable()
        with contextlib.suppress(KeyError):
            importlib.import_module("watched_module_5")
        assert gc.isenabled() == is_collecting
        assert sys.seen == [False]
    finally:
        gc.enable()
        watch.end()
        for name in ("watched_module_5", "watched_module_6"):
            sys.modules.pop(name, None)


# --- Steps --------------------------------------------------------------------------------------------


def test_no_step_of_several_threads_is_lost(steps, tmp_path):
    steps.begin("sessions", "")

    def make() -> None:
        for _ in range(5000):
            steps.add(stepping.clock())

    threads = [threading.Thread(target=make) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert steps.total() == 20_000
    steps.report({"step": 7, "loss": 0.5, "batch": 3}, is_fed=False)
    said, report = lines(tmp_path)
    assert said["message"] == "its steps, made by sessions; "
    assert (report["steps"], report["examples"], report["step"]) == (20_000, 60_000, 7)
    assert report["interval_seconds"] > 0
    assert report["input_wait_seconds"] is None


def test_the_waits_of_several_threads_are_not_added_up(steps, tmp_path):
    steps.begin("sessions", "")
    said = {"step": None, "loss": None, "batch": 3}
    for number in range(2):
        for _ in range(2):
            thread = threading.Thread(target=steps.add, args=(stepping.clock(),))
            if number:
                thread.start()
                thread.join()
            else:
                steps.add(stepping.clock())
        steps.report(dict(said), is_fed=True)
    alone, together = reports(tmp_path)
    assert alone["input_wait_seconds"] is not None
    assert together["input_wait_seconds"] is None
    steps.add(stepping.clock())
    assert steps.step_microseconds() is None


TRAIN, OTHER, LOSS = (SimpleNamespace(name=name) for name in ("train", "other", "loss"))


class Script:
    """A script that makes steps by a session, on a clock of its own: each takes as long as the others."""

    STEP_SECONDS, OTHER_SECONDS = 0.0004, 0.003

    def __init__(self, steps, reporter, monkeypatch):
        self.now = 100.0
        self.made = 0
        self._ends = []
        monkeypatch.setattr(stepping, "clock", lambda: self.now)
        monkeypatch.setattr(sessions, "clock", lambda: self.now)
        monkeypatch.setattr(graphs, "training_run", self._kind)
        monkeypatch.setattr(graph_facts, "note", lambda *arguments: None)
        monkeypatch.setattr(stepping.atexit, "register", self._at_exit)
        model = SimpleNamespace(
            describe=lambda *arguments: None, wanted=lambda run: [], take=lambda run, found: None
        )
        untraced = SimpleNamespace(due=lambda total: None)
        watch = sessions.SessionWatch(
            steps,
            guarding.Guard(reporter),
            graphs.Facts(),
            model,
            untraced,
            SimpleNamespace(task=None),
            reporter,
        )
        script = self

        class BaseSession:
            _graph = SimpleGraph()

            def _do_run(self, handle, target_list, fetch_list, feed_dict, options, run_metadata):
                script.now += script.OTHER_SECONDS if target_list == [OTHER] else script.STEP_SECONDS
                if feed_dict == "wrong":
                    raise ValueError("fed wrongly")
                return ["value"] * len(fetch_list)

            def make_callable(self, fetches, feed_list=None, accept_options=False):
                raise NotImplementedError

        watch.patch(
            SimpleNamespace(BaseSession=BaseSession, tf_session=None, config_pb2=None, _FetchHandler=None)
        )
        self.session = BaseSession()

    @staticmethod
    def _kind(graph, targets, fetches, facts):
        read = {"step": None, "loss": None, "batch": 8}
        run = SimpleNamespace(
            is_fed=True,
            first=None,
            described=str,
            graph=weakref.ref(graph),
            tensors=list,
            step_alone=list,
            read=lambda *_: dict(read),
        )
        return (run, {}) if TRAIN in targets or TRAIN in fetches else None

    def _at_exit(self, function, *arguments):
        self._ends.append(lambda: function(*arguments))

    def end(self):
        """Do what is done at the end of the process: what was asked for last comes first."""
        while self._ends:
            self._ends.pop()()

    def step(self, pause=0.0, targets=(TRAIN,), fetches=(), feeds=None):
        self.now += pause
        found = self.session._do_run(None, list(targets), list(fetches), feeds, None, None)
        assert found == ["value"] * len(fetches)
        self.made += 1

    def other(self, pause=0.0):
        self.now += pause
        self.session._do_run(None, [OTHER], [], None, None, None)

    def run(self, seconds):
        """Make steps one after the other."""
        until = self.now + seconds
        while self.now < until:
            self.step()


class SimpleGraph:
    """Has weak references, as a graph has."""


def reports(folder: Path) -> list[dict]:
    """The reports of steps."""
    return [each for each in lines(folder) if "steps" in each]


def reported(folder: Path, key: str) -> float:
    return sum(each[key] for each in reports(folder))


@pytest.fixture
def script(steps, reporter, monkeypatch):
    return Script(steps, reporter, monkeypatch)


def test_of_a_fast_script_most_steps_are_only_counted_and_none_is_lost(script, steps, tmp_path, monkeypatch):
    script.run(1.5)
    looked = []
    add = steps.add
    monkeypatch.setattr(steps, "add", lambda begun, **how: (looked.append(begun), add(begun, **how)))
    before = script.made
    script.run(5.0)
    # Of 2,500 a second 125 in 50 ms, one that finds none, and one that is looked at; reports come between.
    assert 110 < (script.made - before) / len(looked) <= 127
    assert steps.total() == script.made
    script.end()
    assert reported(tmp_path, "steps") == script.made
    assert reported(tmp_path, "examples") == 8 * script.made


def test_a_step_that_fails_is_none_and_its_error_is_the_scripts(script, steps):
    script.run(1.5)
    for number in range(50):
        for _ in range(number % 7):
            script.step()
        with pytest.raises(ValueError, match="fed wrongly"):
            script.step(feeds="wrong")
        assert steps.total() == script.made


@pytest.mark.parametrize("has_thread", [False, True])
def test_a_script_that_gets_slow_is_reported_again_after_a_few_steps(script, steps, tmp_path, has_thread):
    script.run(2.5)
    if has_thread:
        steps._looked_on()  # As is done by the thread that looks whether a trainer stands, every two seconds.
    for _ in range(2 if has_thread else stepping.MOST_UNWATCHED + 2):
        script.step(pause=3.0)
    before = len(reports(tmp_path))
    for _ in range(5):
        script.step(pause=3.0)
    assert len(reports(tmp_path)) == before + 5


@pytest.mark.parametrize("seconds", [0.5, 2.5])
def test_the_last_report_ends_with_the_last_step(script, tmp_path, monkeypatch, seconds):
    """A script may export its model for minutes; of a fast one the last steps are only counted."""
    monkeypatch.setattr(stepping, "time", SimpleNamespace(time=lambda: script.now + 5e5))
    script.run(seconds)
    last = script.now
    script.other(pause=600.0)
    script.end()
    *before, report = reports(tmp_path)
    assert report["at"] == pytest.approx(last + 5e5, abs=0.01)
    assert sum(each["interval_seconds"] for each in (*before, report)) == pytest.approx(seconds, abs=0.01)
    assert reported(tmp_path, "steps") == script.made


def test_what_trains_only_with_others_is_looked_at_each_time(script, steps):
    script.run(1.5)
    for _ in range(3000):
        script.step(targets=(OTHER, TRAIN))
    counted = steps.total()
    assert counted == script.made
    for _ in range(100):
        script.other()
    assert steps.total() == counted
    for _ in range(3000):
        script.step(targets=(), fetches=(TRAIN, LOSS))
    assert steps.total() == script.made


@given(
    st.lists(
        st.tuples(st.sampled_from(["step", "step", "other"]), st.sampled_from([0.0, 0.0001, 0.001, 0.04])),
        max_size=120,
    ),
    st.booleans(),
)
@settings(max_examples=examples(50))
def test_what_a_script_waits_between_steps_is_seen_though_most_are_only_counted(actions, has_others):
    with pytest.MonkeyPatch.context() as monkeypatch, tempfile.TemporaryDirectory() as folder:
        reporter = reporting.Reporter(str(Path(folder, "reports.jsonl")))
        steps = stepping.Steps(reporter, guarding.Guard(reporter))
        script = Script(steps, reporter, monkeypatch)
        script.run(2.5)
        waits = 0.0
        for action, pause in actions:
            if action == "step":
                script.step(pause)
                waits += pause
            elif has_others:
                script.other(pause)
            assert steps.waited(script.now + 0.5) >= 0
        script.run(0.1)
        script.end()
        assert reported(Path(folder), "steps") == steps.total() == script.made
        found = reported(Path(folder), "input_wait_seconds")
        # What lies before something else is not waited for; of several gaps only their sum is known.
        assert 0 <= found <= sum(pause for _, pause in actions) + 1e-6
        if not has_others:
            assert found == pytest.approx(waits, abs=1e-6)


def test_a_graph_that_is_gone_takes_its_kind_of_steps_along(script, steps):
    script.run(1.5)
    while not steps.unwatched.kind:
        script.step()
    script.session.__class__._graph = SimpleGraph()
    gc.collect()
    assert steps.unwatched.kind == 0
    assert steps.total() == script.made


def test_no_step_of_threads_that_begin_late_is_lost(script, steps):
    script.run(2.5)
    made = [0] * 4

    def make(thread: int) -> None:
        for _ in range(3000):
            script.session._do_run(None, [TRAIN], [], None, None, None)
            made[thread] += 1

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=make, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(interval)
    assert steps.total() == script.made + sum(made)


def test_without_a_global_step_its_own_steps_count(steps, tmp_path):
    steps.begin("sessions", "")
    for _ in range(3):
        steps.add(0.0)
    steps.report({"step": None, "loss": None, "batch": None}, is_fed=True)
    report = lines(tmp_path)[-1]
    assert (report["step"], report["steps"], report["examples"]) == (3, 3, None)


def test_what_is_no_finite_number_is_told_as_null(reporter, tmp_path):
    assert reporter.append("step", {"loss": float("nan"), "step": 1})
    assert lines(tmp_path)[0]["loss"] is None


# --- Reports ------------------------------------------------------------------------------------------


def test_a_full_disk_ends_it_in_silence():
    reporter = reporting.Reporter("/dev/full")
    limit = reporting.MOST_FAILURES
    assert not any(reporter.append("step", {}) for _ in range(2 * limit))


def test_a_disk_that_has_room_again_is_written_to_again(reporter, tmp_path, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(reporting, "clock", lambda: now)
    (tmp_path / "reports.jsonl").mkdir()  # Nothing can be written there.
    for _ in range(reporting.MOST_FAILURES):
        assert not reporter.append("step", {})
    (tmp_path / "reports.jsonl").rmdir()
    assert not reporter.append("step", {}), "it waits a while"
    now += reporting.RETRY_SECONDS
    assert reporter.append("step", {})
    assert reporter.append("step", {})
    (tmp_path / "reports.jsonl").unlink()
    (tmp_path / "reports.jsonl").mkdir()
    for _ in range(reporting.MOST_FAILURES):
        assert not reporter.append("step", {})
    now += reporting.RETRY_SECONDS
    assert not reporter.append("step", {})
    (tmp_path / "reports.jsonl").rmdir()
    assert not reporter.append("step", {}), "it waits as long again"


def test_a_fact_that_could_not_be_written_is_said_later(reporter, tmp_path):
    (tmp_path / "reports.jsonl").mkdir()
    reporter.state("device_filters", True)
    (tmp_path / "reports.jsonl").rmdir()
    for _ in range(2):
        reporter.state("device_filters", True)
    assert [each["value"] for each in lines(tmp_path)] == [True]


def test_a_folder_that_is_not_there_is_no_error(tmp_path):
    reporter = reporting.Reporter(str(tmp_path / "none" / "reports"))
    reporter.say("hello")
    assert not reporter.owns()
    assert list(tmp_path.iterdir()) == []


def test_it_says_a_thing_once_and_not_too_much(reporter, tmp_path):
    for number in range(100):
        reporter.say(f"{number // 2} " + "x" * 5000)
    said = lines(tmp_path)
    assert len(said) == reporting.MOST_MESSAGES
    assert max(len(each["message"]) for each in said) < 1000


def test_of_a_replicas_processes_the_first_reports_as_long_as_it_lives(tmp_path):
    path = str(tmp_path / "reports.jsonl")
    with subprocess.Popen(["sleep", "60"]) as other:
        (tmp_path / "reports.jsonl.owner").write_text(str(other.pid))
        assert not reporting.Reporter(path).owns()
        other.kill()
        other.wait()
    first = reporting.Reporter(path)
    assert first.owns()
    assert first.owns()
    assert (tmp_path / "reports.jsonl.owner").read_text() == str(os.getpid())


def test_an_owner_that_was_killed_before_it_said_who_it_is_is_replaced(tmp_path):
    owner = tmp_path / "reports.jsonl.owner"
    owner.touch()
    assert not reporting.Reporter(str(tmp_path / "reports.jsonl")).owns()
    age(owner, 60)
    assert reporting.Reporter(str(tmp_path / "reports.jsonl")).owns()
    assert owner.read_text() == str(os.getpid())


def test_what_was_left_where_variables_were_written_is_removed(tmp_path):
    with subprocess.Popen(["sleep", "60"]) as other:
        alive, gone = (tmp_path / f"variables.json.{pid}.tmp" for pid in (other.pid, 2**22 + 7))
        for each in (alive, gone):
            each.touch()
        model = models.Model(str(tmp_path / "variables.json"))
        model._write()
        other.kill()
    assert sorted(tmp_path.iterdir()) == [tmp_path / "variables.json", alive]


def test_a_child_that_is_forked_does_not_report(reporter, tmp_path):
    assert reporter.owns()
    (tmp_path / "reports.jsonl.owner").write_text("")
    reporter._owner = os.getpid() + 1  # as a child finds it
    assert not reporter.owns()


# --- Errors of its own ----------------------------------------------------------------------------------


def test_after_some_errors_of_its_own_it_looks_at_nothing(reporter, tmp_path):
    guard = guarding.Guard(reporter)
    assert guard(lambda: 5) == 5
    for _ in range(guarding.MOST_ERRORS):
        assert not guard.is_broken
        assert guard(lambda: 1 // 0) is None
    assert guard.is_broken
    assert guard(lambda: 5) is None
    error, end = lines(tmp_path)
    assert "ZeroDivisionError" in error["message"]
    assert end["message"] == "its steps are not seen: there were 5 errors of its own"


# --- Traces -------------------------------------------------------------------------------------------


@pytest.fixture
def watch(tmp_path):
    def make(**more: str):
        environment = {
            "PACELINE_RUN_DIR": str(tmp_path), "PACELINE_ROLE": "worker", "PACELINE_INDEX": "0",
            "PACELINE_ATTEMPT": "2", **more,
        }  # fmt: skip
        return traces.TraceWatch(environment)

    return make


def test_a_trace_that_is_asked_for_is_taken_once(watch, tmp_path):
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "request").write_text("2026-01-02T03-04-05.678Z\n")
    watched = watch(PACELINE_TRAINING='{"trace": {"every_seconds": 0}}')
    assert watched.due(0) == "2026-01-02T03-04-05.678Z"
    assert watched.due(1) is None
    folder = tmp_path / "traces" / "2026-01-02T03-04-05.678Z"
    folder.mkdir()
    (folder / "worker-0.2.zip").write_bytes(b"")
    assert watch(PACELINE_TRAINING='{"trace": {"every_seconds": 0}}').due(2) is None


def test_now_and_then_one_is_taken_unasked_but_not_of_the_first_steps(watch):
    watched = watch(PACELINE_TRAINING='{"trace": {"every_seconds": 1e9}}')
    assert watched.due(traces.WARM_UP_STEPS - 1) is None
    name = watched.due(traces.WARM_UP_STEPS)
    assert traces.is_name(name)
    assert watched.due(1000) is None


def test_what_a_trace_left_that_was_killed_is_removed(watch, tmp_path):
    watched = watch(PACELINE_ATTEMPT="3")
    folder = tmp_path / "traces"
    kept = [
        "2026-01-02T03-04-01.000Z/.worker-0.3.zip.tmp.other",
        "2026-01-02T03-04-01.000Z/.worker-1.1.zip.tmp",
    ]
    left = ["2026-01-02T03-04-02.000Z/.worker-0.3.zip.tmp", "2026-01-02T03-04-03.000Z/.worker-0.1.zip.tmp"]
    for each in kept + left:
        (folder / each).parent.mkdir(parents=True, exist_ok=True)
        (folder / each).write_bytes(b"PK")
    (folder / "2026-01-02T03-04-04.000Z").mkdir()
    age(folder / "2026-01-02T03-04-04.000Z", 2 * traces.LEFT_SECONDS)
    (folder / "2026-01-02T03-04-05.000Z").mkdir()
    watched._write("2026-01-02T03-04-06.000Z", b"", {})
    found = sorted(str(each.relative_to(folder)) for each in folder.glob("*/*"))
    assert found == [*kept, "2026-01-02T03-04-06.000Z/worker-0.3.zip"]
    assert sorted(each.name[17:19] for each in folder.iterdir()) == ["01", "05", "06"]


def test_the_oldest_traces_of_a_trainer_go_whichever_attempt_took_them(watch, tmp_path):
    for number in range(traces.KEPT + 1):
        folder = tmp_path / "traces" / f"2026-01-02T03-{number // 60:02}-{number % 60:02}.000Z"
        folder.mkdir(parents=True)
        (folder / f"worker-0.{1 + number // 9}.zip").write_bytes(b"")
        (folder / "worker-10.1.zip").write_bytes(b"")
    watch(PACELINE_ATTEMPT="9")._write("2026-01-02T04-00-00.000Z", b"", {})
    found = sorted(each.parent.name for each in tmp_path.glob("traces/*/worker-0.*.zip"))
    assert (len(found), found[0]) == (traces.KEPT, "2026-01-02T03-00-02.000Z")
    assert len(list(tmp_path.glob("traces/*/worker-10.1.zip"))) == traces.KEPT + 1


def test_a_request_of_a_coordinator_that_was_killed_does_not_keep_the_next_one_from_asking(watch, tmp_path):
    request = tmp_path / "traces" / "request"
    watched = watch(PACELINE_TRAINING='{"trace": {"every_seconds": 1e9}}')
    request.parent.mkdir()
    request.write_text("2026-01-02T03-04-05.678Z profile 1000 1.000\n")
    watched.ask_for_profiles(traces.WARM_UP_STEPS)
    assert request.read_text().startswith("2026-01-02")
    age(request, 2 * traces.LEFT_SECONDS)
    watch(PACELINE_TRAINING='{"trace": {"every_seconds": 1e9}}').ask_for_profiles(traces.WARM_UP_STEPS)
    assert not request.read_text().startswith("2026-01-02")


@given(text=st.text(max_size=40))
def test_what_is_no_name_is_no_request(text):
    assert traces.is_name(text) == names.is_name(text)


@given(seconds=st.floats(0, 4e9))
def test_names_are_those_of_the_host(seconds):
    name = traces.name_at(seconds)
    assert names.is_name(name)
    assert traces.is_name(name)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"trace": 5}', '{"trace": {"every_seconds": "x"}}'])
def test_settings_that_make_no_sense_are_passed_over(text):
    found = traces.every_seconds({"PACELINE_TRAINING": text})
    assert found == traces.EVERY_SECONDS


# --- Rows ---------------------------------------------------------------------------------------------


def test_rows_that_batches_use_are_counted():
    import numpy as np

    usage = models.Usage(rows=128, id_bytes=8)
    usage.add([(np.array([[0, 0], [1, 127]]), 0)])
    # Of two parts: the second one begins at row 5.
    usage.add([(np.array([-1, 128]), 0), (np.array([0], dtype=np.int32), 5)])
    told = usage.told({"element_bytes": 4, "shape": [128, 16]})
    assert told["rows_used"] == 3.0
    assert told["step_bytes"] == 3.5 * (2 * 64 + 8)
    assert len(told["row_shares"]) == models.RANGES
    assert sum(told["row_shares"]) == pytest.approx(1)
    assert told["row_shares"][0] == pytest.approx(3 / 5)


# --- Kinds of runs ------------------------------------------------------------------------------------


def test_a_script_whose_runs_are_all_different_is_not_held_up(reporter, monkeypatch, tmp_path):
    """Each kind of run is judged once, and that takes as long as its graph is large."""
    judged = []
    monkeypatch.setattr(graphs, "training_run", lambda *arguments: judged.append(arguments))
    monkeypatch.setattr(sessions, "MOST_KINDS", 3)
    guard = guarding.Guard(reporter)
    watch = sessions.SessionWatch(
        stepping.Steps(reporter, guard), guard, graphs.Facts(), models.Model(None), None, None, reporter
    )

    class Stub:
        pass

    session = Stub()
    session._graph = Stub()
    run = watch._counted(lambda *arguments: list(arguments[3]))
    fetched = [[Stub()] for _ in range(10)]
    for each in [*fetched, *fetched]:
        assert run(session, None, [], each, None, None, None) == each
    assert len(judged) == 3
    assert [line["message"] for line in lines(tmp_path)] == [
        "there are too many kinds of runs to look into all of them"
    ]


# --- Servers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1.15.5", {}), ("2.1.4", {}), ("2.3.0", {}), ("2.4.0-rc1", {"GRPC_FAIL_FAST": "use_caller"}),
     ("2.21.0", {"GRPC_FAIL_FAST": "use_caller"}), ("", {}), ("?", {})],
)  # fmt: skip
def test_calls_to_a_lost_server_fail_where_tensorflow_knows_how(version, expected):
    environment = {}
    servers.fail_fast(version, environment)
    assert environment == expected
    servers.fail_fast(version, chosen := {"GRPC_FAIL_FAST": "false"})
    assert chosen == {"GRPC_FAIL_FAST": "false"}


GIVEN = {"ps": ["10.0.0.1:2222"], "worker": ["10.0.0.2:2222", "10.0.0.3:2222"]}


@pytest.mark.parametrize(
    ("own", "given", "found"),
    [
        ({"ps": "10.0.0.1:2222", "worker": "10.0.0.2:2222"}, GIVEN, {}),
        ({"ps": "localhost:2222", "worker": "10.0.0.2:2222"}, GIVEN, {"ps": "localhost:2222"}),
        ({"ps": "10.0.0.1:5000"}, GIVEN, {"ps": "10.0.0.1:5000"}),
        ({"ps": "clicks-ps-0:2222"}, GIVEN, {}),  # another name of the host, perhaps
        ({"local": "localhost:0"}, GIVEN, {}),  # a server that is alone
        ({"ps": "localhost:33001"}, {"ps": ["127.0.0.1:33001"]}, {}),
        ({"ps": "[::1]:33001"}, {"ps": ["127.0.0.1:33001"]}, {}),
        ({"ps": "localhost:2222"}, {"ps": ["127.0.0.1:33001"]}, {"ps": "localhost:2222"}),
        ({"ps": "localhost:2222"}, {}, {}),
    ],
)
def test_addresses_that_no_replica_has(own, given, found):
    environment = {"TF_CONFIG": json.dumps({"cluster": given})}
    assert servers.foreign(own, servers.given_addresses(environment)) == found


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"cluster": 1}', '{"cluster": {"ps": 1}}'])
def test_a_job_that_gives_no_addresses_has_none(text):
    environment = {} if text is None else {"TF_CONFIG": text}
    assert servers.given_addresses({**environment, "PACELINE_SPARE_WORKERS": "a:1"}) == []


def test_workers_that_may_come_later_have_addresses():
    environment = {"TF_CONFIG": json.dumps({"cluster": GIVEN}), "PACELINE_SPARE_WORKERS": "10.0.0.9:2222"}
    assert servers.given_addresses(environment)[-1] == "10.0.0.9:2222"


# --- Signatures -----------------------------------------------------------------------------------------


class Fits:
    """Trains as a model of Keras does."""

    def fit(self, x=None, y=None, batch_size=None, epochs=1, *, verbose="auto"):
        return x, y, batch_size, epochs, verbose


def test_who_asks_for_the_arguments_of_a_wrapped_function_sees_its_own(reporter):
    model = type("Model", (Fits,), dict(vars(Fits)))
    watch = eager.EagerWatch(reporter, guarding.Guard(reporter), None, None)
    watch.patch_fit(SimpleNamespace(Model=model))
    assert model.fit is not Fits.fit
    for ask in (inspect.getfullargspec, inspect.signature):  # The first is what Keras uses.
        assert ask(model.fit) == ask(Fits.fit)
        assert ask(model().fit) == ask(Fits().fit)
    assert model().fit(1, epochs=2) == (1, None, None, 2, "auto")
    with pytest.raises(signatures.Wrapped):
        watch.patch_fit(SimpleNamespace(Model=model))


def test_a_function_that_shows_no_arguments_can_be_wrapped():
    wrapper = signatures.wraps(min)(lambda *arguments: min(*arguments))
    assert (wrapper(2, 1), wrapper.__name__) == (1, "min")


# --- Coordinators ---------------------------------------------------------------------------------------


class OldClosure:
    """What a worker is given to do, as TensorFlow 2.4 has it."""

    output_remote_value = 0.25

    def execute_on(self, worker):
        return f"done by {worker.worker_index}"


class OtherClosure:
    """As no version has it, yet."""

    def execute_on(self, worker):
        return f"done by {worker.worker_index}"


class Function:
    """Has the calls of a ``tf.function``, and makes its graph in the first one."""

    def __init__(self, body):
        self.body = body

    def __call__(self, *arguments, **named):
        return self.body(*arguments, **named)


def test_of_functions_the_outermost_that_trains_gives_the_loss(reporter):
    function = type("Function", (Function,), {"__call__": Function.__call__})
    watch = eager.EagerWatch(reporter, guarding.Guard(reporter), None, None)
    watch.patch_functions(SimpleNamespace(Function=function))

    def train(loss):
        if watch._function is None:  # The gradients are applied while the graph is made.
            watch._function = watch._calling.function
        return loss

    inner = function(train)
    other, outer = function(lambda: 5.0), function(lambda loss: {"loss": inner(loss), "ended": True})
    other()
    assert watch._last is None
    with pytest.raises(TypeError):
        outer("too", "many")
    assert outer(0.5) == watch._last == {"loss": 0.5, "ended": True}
    assert (inner(0.25), other()) == (0.25, 5.0)
    assert watch._last == {"loss": 0.5, "ended": True}


@pytest.mark.parametrize(
    ("given", "loss"),
    [
        (0.5, 0.5),
        ({"loss": 0.25}, 0.25),
        ({}, None),
        (None, None),
        (7, None),
        ((0.5, 1.0), None),
        ("a", None),
    ],
)
def test_a_loss_is_a_number_with_a_fraction(given, loss):
    assert eager._loss(given) == loss


def variable(name, *shape):
    return SimpleNamespace(name=name, shape=shape, dtype="float32", device="/job:ps/task:0")


def test_eager_variables_that_share_a_name_are_each_one():
    trained = [
        variable("Variable:0", 8, 4), variable("Variable:0"), variable("Variable:0", 3),
        variable("ids/part_0:0", 5, 2), variable("ids/part_1:0", 4, 2),
        variable("ids/part_0:0", 7, 2), variable("ids/part_1:0", 6, 2),
    ]  # fmt: skip
    found = models.trained_variables("Adam", [], [(object(), each) for each in trained])
    assert {name: each["shape"] for name, each in found.items()} == {
        "Variable": [8, 4],
        "Variable_1": [],
        "Variable_2": [3],
        "ids": [9, 2],
        "ids_1": [13, 2],
    }
    assert all(each["name"] == name for name, each in found.items())
    assert len(found["ids_1"]["devices"]) == 2


@pytest.mark.parametrize(("closure", "last"), [(OldClosure, 0.25), (OtherClosure, None)])
def test_a_closure_of_another_version_is_done_all_the_same(tmp_path, reporter, monkeypatch, closure, last):
    monkeypatch.setattr(closure, "execute_on", closure.execute_on)  # what is wrapped here is put back
    watch = eager.EagerWatch(reporter, guarding.Guard(reporter), None, None)
    watch.patch_coordinator(SimpleNamespace(Closure=closure))
    assert closure().execute_on(SimpleNamespace(worker_index=1)) == "done by 1"
    assert watch._last == last
    said = [line["message"] for line in lines(tmp_path)]
    assert len(said) == (0 if last else 1)


class TracedFunctions:
    """Stands for the module of TensorFlow that knows which function is traced."""

    def __init__(self):
        self.graph = SimpleGraph()

    @staticmethod
    def executing_eagerly_outside_functions():
        return True

    def get_default_graph(self):
        return self.graph

    @staticmethod
    def new(outer_graph=None):
        graph = SimpleGraph()
        graph.outer_graph = SimpleGraph() if outer_graph is None else outer_graph
        return graph


class Optimizer:
    """Has the methods of an optimizer of Keras."""

    def __init__(self):
        self.iterations = SimpleNamespace(numpy=lambda: 0)

    def apply_gradients(self, grads_and_vars):
        return list(grads_and_vars)


@pytest.fixture
def applied(reporter, monkeypatch):
    """Applies gradients by an optimizer while the graph of a function is made; returns whom it follows."""
    framework = TracedFunctions()
    monkeypatch.setitem(sys.modules, "tensorflow.python.framework.ops", framework)
    monkeypatch.setattr(eager.threading.Thread, "start", lambda self: None)
    monkeypatch.setattr(eager.atexit, "register", lambda *arguments: None)
    described = SimpleNamespace(describe_trained=lambda *arguments: None)
    watch = eager.EagerWatch(reporter, guarding.Guard(reporter), described, None)
    module = SimpleNamespace(Optimizer=type("Optimizer", (Optimizer,), dict(vars(Optimizer))))
    watch.patch_optimizers(module)

    def apply(graph, optimizer):
        framework.graph = graph or SimpleGraph()
        assert optimizer.apply_gradients(iter([1, 2])) == [1, 2]
        return watch._optimizer()

    apply.optimizer = module.Optimizer
    return apply


def test_the_optimizer_of_a_new_function_is_followed(applied):
    first, second = applied.optimizer(), applied.optimizer()
    assert applied(TracedFunctions.new(), first) is first
    assert applied(TracedFunctions.new(), second) is second
    assert applied(None, first) is second  # a step that is not traced


def test_of_several_optimizers_at_once_the_first_is_followed(applied):
    first, second = applied.optimizer(), applied.optimizer()
    for _ in range(2):  # The function is traced again for batches of another shape.
        outer = TracedFunctions.new()
        assert applied(TracedFunctions.new(outer), first) is first
        assert applied(TracedFunctions.new(outer), second) is first


def test_optimizers_of_a_script_that_traces_nothing_are_taken_as_several_at_once(applied):
    first, second = applied.optimizer(), applied.optimizer()
    for _ in range(2):
        assert applied(None, first) is first
        assert applied(None, second) is first


class Coordinated:
    """A process whose optimizer counts steps, on a clock of its own."""

    def __init__(self, reporter, monkeypatch, folder):
        self.now, self.count, self._folder, self._seen = 100.0, 0, folder, 0
        monkeypatch.setattr(eager, "clock", lambda: self.now)
        untraced = SimpleNamespace(refuse=lambda: None, ask_for_profiles=lambda total: None)
        self.watch = eager.EagerWatch(reporter, guarding.Guard(reporter), None, untraced)
        self.watch._iterations = SimpleNamespace(numpy=lambda: self.count)
        self.watch._begin_interval()

    def follow(self, count):
        self.watch._iterations = SimpleNamespace(numpy=count)

    def begin(self, *workers):
        for each in workers:
            self.watch._note_worker(SimpleNamespace(worker_index=each))

    def tick(self, steps=0, ended=(), *, is_over=False):
        """Let a second pass; return the reports: the replica, its steps and the seconds they took."""
        self.now += 1
        self.count += steps
        for each in ended:
            self.watch._note_closure(OldClosure(), SimpleNamespace(worker_index=each))
        self.watch._look(is_over)
        every = reports(self._folder)
        found, self._seen = every[self._seen :], len(every)
        return [(each.get("replica"), each["steps"], each["interval_seconds"]) for each in found]


@pytest.fixture
def coordinated(reporter, monkeypatch, tmp_path):
    return Coordinated(reporter, monkeypatch, tmp_path)


def test_a_closure_that_takes_seconds_is_told_with_the_time_that_it_took(coordinated):
    coordinated.begin(0, 1)
    assert coordinated.tick() == []
    assert coordinated.tick(10, [0]) == [("worker-0", 10, 2.0)]
    assert coordinated.tick(10, [1]) == [("worker-1", 10, 3.0)]
    assert coordinated.tick() == []
    assert coordinated.tick(10, [0]) == [("worker-0", 10, 3.0)]
    assert coordinated.tick(20, [0, 1]) == [("worker-0", 10, 1.0), ("worker-1", 10, 3.0)]


def test_steps_within_a_closure_are_those_of_the_worker_that_ends_it(coordinated):
    """Also of the first closure: a coordinator that hands out work makes no step itself."""
    coordinated.begin(0)
    assert coordinated.tick(5) == []
    assert coordinated.tick(5, [0]) == [("worker-0", 10, 2.0)]
    assert coordinated.tick(5) == []
    assert coordinated.tick(5, [0]) == [("worker-0", 10, 2.0)]
    assert coordinated.tick(3, is_over=True) == [(None, 3, 1.0)]


def test_a_worker_that_comes_later_has_not_taken_the_time_before(coordinated):
    coordinated.begin(0)
    for _ in range(5):
        coordinated.tick(10, [0])
    coordinated.begin(1)
    assert coordinated.tick() == []
    assert coordinated.tick(20, [0, 1]) == [("worker-0", 10, 2.0), ("worker-1", 10, 2.0)]


def test_a_process_that_coordinates_no_worker_reports_its_own_steps(coordinated):
    assert coordinated.tick() == []
    assert coordinated.tick(10) == [(None, 10, 2.0)]
    assert coordinated.tick(10) == [(None, 10, 1.0)]


def test_steps_of_another_optimizer_are_counted_from_where_it_is(coordinated):
    assert coordinated.tick(1000) == [(None, 1000, 1.0)]
    coordinated.follow(lambda: coordinated.count - 1000)
    # What the first has done until then counts; from now on the second counts.
    assert coordinated.tick(7) == [(None, 7, 1.0)]
    assert coordinated.tick(5) == [(None, 5, 1.0)]


def test_steps_after_an_older_count_was_restored_are_counted(coordinated):
    assert coordinated.tick(1000) == [(None, 1000, 1.0)]
    assert coordinated.tick(-900) == []
    assert coordinated.tick(5) == [(None, 5, 1.0)]


@pytest.mark.parametrize(("is_followed", "planned"), [(False, 500), (True, 1300)])
def test_where_fit_goes_on_its_last_step_is_further_on(coordinated, is_followed, planned):
    watch, optimizer = coordinated.watch, Optimizer()
    coordinated.count = 1000
    if is_followed:
        watch._optimizer = weakref.ref(optimizer)
    watch._first_epoch = 2
    watch._note_plan(
        SimpleNamespace(params={"epochs": 5, "steps": 100}, model=SimpleNamespace(optimizer=optimizer))
    )
    assert watch._planned == planned


def test_a_fact_is_said_again_when_it_has_changed(tmp_path, reporter):
    for value in (1.0, 1.1, 0.9, 2.0, 2.0):
        reporter.state("checkpoint_every_seconds", value)
    for flag in (False, False, True):
        reporter.state("device_filters", flag)
    found = [(line["type"], line["name"], line["value"]) for line in lines(tmp_path)]
    assert found == [
        ("fact", "checkpoint_every_seconds", 1.0),
        ("fact", "checkpoint_every_seconds", 2.0),
        ("fact", "device_filters", False),
        ("fact", "device_filters", True),
    ]


def test_milestones_come_more_and_more_rarely():
    milestones = saving.Milestones()
    assert [number for number in range(1, 100) if milestones.reached()] == [3, 6, 12, 24, 48, 96]


def test_what_python_takes_and_reads_is_what_rose_meanwhile(tmp_path, reporter, steps, monkeypatch):
    """The first moment is that of the first report: what a script does before it trains does not count."""
    moments = iter([(10, 100.0, 50.0, 1000), (40, 110.0, 54.0, 4000)])

    class Moment:
        def __init__(self, total):
            self.steps, self.at, self.cpu_seconds, self.read_bytes = next(moments)

    monkeypatch.setattr(inputs, "_Moment", Moment)
    watch = inputs.InputWatch(reporter, steps)
    for _ in range(1 + saving.FIRST_TIMES):
        watch.note({"x": SimpleNamespace(nbytes=80), "y": SimpleNamespace(nbytes=20)})
    found = {line["name"]: line["value"] for line in lines(tmp_path)}
    assert found == {"feeds_bytes_per_step": 100, "python_share": 0.4, "reads_bytes_per_step": 100}


def test_nothing_is_said_of_python_where_several_threads_train(tmp_path, reporter, steps):
    for _ in range(2):
        thread = threading.Thread(target=steps.add, args=(stepping.clock(),))
        thread.start()
        thread.join()
    watch = inputs.InputWatch(reporter, steps)
    for _ in range(20):
        steps.add(stepping.clock())
        watch.note({})
    assert lines(tmp_path) == []
