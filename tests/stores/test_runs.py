"""Runs, their replicas and their states, in each kind of database."""

from __future__ import annotations

import dataclasses

import pytest

from paceline import errors, stores
from paceline.control import states
from paceline.model import roles
from paceline.model.jobs import job_specs, runs, statuses
from paceline.model.measures import samples

PS = roles.ReplicaId(roles.Role.PS, 0)
WORKER = roles.ReplicaId(roles.Role.WORKER, 0)
RUNNING, PENDING = statuses.JobPhase.RUNNING, statuses.JobPhase.PENDING
STOPPED = statuses.JobPhase.STOPPED


def with_phase(state, phase, replica_phase=statuses.ReplicaPhase.RUNNING, **changes):
    replicas = tuple(
        dataclasses.replace(one, phase=replica_phase, attempt=1, **changes) for one in state.replicas
    )
    return dataclasses.replace(state, phase=phase, message=f"is {phase}", replicas=replicas)


def test_a_run_comes_back(store, make_run):
    run, state = make_run()
    store.create_run(run, state)
    assert store.get_run("demo") == run
    assert store.load_state("demo") == state
    assert [row.replica for row in store.replicas("demo")] == list(run.spec.replicas())
    assert store.replicas("demo")[0] == runs.ReplicaRow(
        replica=PS, phase=statuses.ReplicaPhase.PENDING, attempt=0, restarts=0
    )


def test_a_name_is_taken_once(filled, make_run):
    with pytest.raises(errors.Conflict, match="there is a job 'demo' already") as caught:
        filled.create_run(*make_run(ps=1))
    assert "paceline delete demo" in (caught.value.hint or "")
    assert len(filled.replicas("demo")) == 5


@pytest.mark.parametrize(
    "name", ["it's", 'a "b"', "点击率", "x; DROP TABLE runs --", "100%", "a_b", "\\", "é"]
)
def test_any_name_is_only_a_name(filled, make_run, name):
    filled.create_run(*make_run(name))
    assert filled.get_run(name).name == name
    filled.append_events(name, [runs.JobEvent(at=1.0, kind="note", message=name)])
    assert filled.events(name)[0][1].message == name
    assert filled.run_names_like(name) == {name}
    filled.delete_run(name)
    assert [run.name for run in filled.list_runs()] == ["demo"]


def test_names_like_a_prefix(store, make_run):
    for name in ("clicks", "clicks-2", "Clicks-3", "cli_x", "clixx", "other"):
        store.create_run(*make_run(name))
    assert store.run_names_like("clicks") == {"clicks", "clicks-2"}
    assert store.run_names_like("cli_") == {"cli_x"}
    assert store.run_names_like("zzz") == set()


def test_a_misspelt_name_gets_a_suggestion(store, make_run):
    store.create_run(*make_run("clicks-2026"))
    with pytest.raises(errors.NotFound, match="no job 'click-2026'") as caught:
        store.get_run("click-2026")
    assert caught.value.hint == "Did you mean clicks-2026?"
    with pytest.raises(errors.NotFound) as caught:
        store.get_run("something else")
    assert "paceline list" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.load_state("no"),
        lambda s: s.update_run("no", message="x"),
        lambda s: s.delete_run("no"),
        lambda s: s.replicas("no"),
        lambda s: s.set_replica_facts("no", PS, pid=1),
        lambda s: s.set_replica_facts("demo", roles.ReplicaId(roles.Role.PS, 9), pid=1),
        lambda s: s.append_events("no", []),
        lambda s: s.events("no"),
        lambda s: s.add_request("no", "stop", at=1.0),
        lambda s: s.requests("no"),
        lambda s: s.append_samples("no", []),
        lambda s: s.append_samples(
            "no", [samples.Sample(replica=PS, attempt=1, at=1.0, interval_seconds=1.0)]
        ),
        lambda s: s.samples("no"),
        lambda s: s.latest_samples("no"),
        lambda s: s.spool_offset("no", PS, 1),
        lambda s: s.save_state("no", states.JobState(spec=job_specs.JobSpec(name="no")), at=1.0),
    ],
)
def test_what_does_not_exist_is_not_found(filled, call):
    with pytest.raises(errors.NotFound):
        call(filled)


def test_a_list_is_by_time_of_submission(store, make_run):
    for number, name in enumerate(["b", "a", "d", "c"]):
        store.create_run(*make_run(name, at=float(number)))
    run, state = make_run("d")
    store.save_state("d", with_phase(state, RUNNING), at=50.0)
    assert [one.name for one in store.list_runs()] == ["c", "d", "a", "b"]
    assert [one.name for one in store.list_runs(newest_first=False, limit=2)] == ["b", "a"]
    assert [one.name for one in store.list_runs(phases=[PENDING])] == ["c", "a", "b"]
    assert store.list_runs(phases=[]) == []
    assert store.list_runs(phases=(RUNNING, STOPPED)) == [
        runs.RunSummary(
            name="d", phase=RUNNING, message="is running", engine="local", directory=run.directory,
            submitted_at=2.0, started_at=50.0, finished_at=None,
            ttl_after_finished_seconds=None, replicas="ps 2/2, worker 3/3",
            labels={"team": "ads"}, model="train-9fbe4685",
        )
    ]  # fmt: skip


def test_many_runs_are_listed(store, make_run):
    for number in range(300):
        store.create_run(*make_run(f"run-{number}", ps=1, workers=1, at=float(number)))
    listed = store.list_runs()
    assert len(listed) == 300
    assert listed[0].name == "run-299"
    assert {run.replicas for run in listed} == {"ps 0/1, worker 0/1"}


def test_facts_are_updated_one_by_one(filled):
    filled.update_run("demo", phase=RUNNING, notes=["no cgroup"])
    filled.update_run("demo", message="on its way", started_at=5.0)
    filled.update_run("demo", finished_at=7.0)
    filled.update_run("demo")
    run = filled.get_run("demo")
    assert (run.phase, run.message, run.started_at, run.finished_at) == (RUNNING, "on its way", 5.0, 7.0)
    assert run.notes == ("no cgroup",)
    filled.update_run("demo", message="", notes=())
    assert (filled.get_run("demo").message, filled.get_run("demo").notes) == ("", ())


def test_a_saved_state_is_shown_everywhere(filled, make_run):
    _, state = make_run()
    reason = statuses.ExitReason(kind=statuses.ExitKind.SIGNAL, signal=9, message="killed")
    saved = with_phase(state, RUNNING, restarts=2, memory_bytes=2**40, exit=reason)
    filled.save_state("demo", saved, at=50.0)
    assert filled.load_state("demo") == saved
    run = filled.get_run("demo")
    assert (run.phase, run.message, run.started_at, run.finished_at) == (RUNNING, "is running", 50.0, None)
    row = filled.replicas("demo")[0]
    assert (row.attempt, row.restarts, row.memory_bytes, row.exit) == (1, 2, 2**40, reason)
    assert filled.list_runs()[0].replicas == "ps 2/2, worker 3/3"


def test_times_of_start_and_finish_follow_the_phase(filled, make_run):
    _, state = make_run()
    times = []
    for at, phase in enumerate([PENDING, RUNNING, RUNNING, STOPPED, STOPPED, RUNNING, STOPPED]):
        filled.save_state("demo", dataclasses.replace(state, phase=phase), at=float(at))
        run = filled.get_run("demo")
        times.append((run.started_at, run.finished_at))
    assert times == [
        (None, None), (1.0, None), (1.0, None), (1.0, 3.0), (1.0, 3.0), (1.0, None), (1.0, 6.0),
    ]  # fmt: skip


@pytest.mark.parametrize("seconds", [None, 60.0])
def test_a_time_to_live_that_is_changed_counts(filled, make_run, seconds):
    _, state = make_run()
    spec = dataclasses.replace(state.spec, ttl_after_finished_seconds=seconds)
    filled.save_state("demo", dataclasses.replace(state, spec=spec), at=1.0)
    (summary,) = filled.list_runs()
    assert summary.ttl_after_finished_seconds == seconds


def test_a_state_with_other_replicas_keeps_the_rows_of_those_before(filled, make_run):
    _, larger = make_run(ps=1, workers=4)
    filled.save_state("demo", larger, at=1.0)
    assert filled.load_state("demo") == larger
    assert {str(row.replica) for row in filled.replicas("demo")} == {
        "ps-0", "ps-1", "worker-0", "worker-1", "worker-2", "worker-3",
    }  # fmt: skip


def test_facts_of_a_launch(filled, make_run):
    filled.set_replica_facts("demo", PS, host="h1", address="10.0.0.1:2222", cores=(0, 1))
    filled.set_replica_facts("demo", PS, pid=77)
    filled.set_replica_facts("demo", PS)
    row = filled.replicas("demo")[0]
    assert (row.host, row.address, row.pid, row.cores) == ("h1", "10.0.0.1:2222", 77, (0, 1))
    filled.save_state("demo", with_phase(make_run()[1], RUNNING), at=1.0)
    assert filled.replicas("demo")[0].address == "10.0.0.1:2222"


def test_a_deleted_run_leaves_nothing(filled, make_run, store_url):
    sample = samples.Sample(replica=WORKER, attempt=1, at=1.0, interval_seconds=1.0)
    report = samples.StepReport(replica=WORKER, attempt=1, at=1.0)
    evaluation = samples.EvaluationReport(replica=WORKER, attempt=1, at=1.0)
    event = runs.JobEvent(at=1.0, kind="x", message="y")
    filled.create_run(*make_run("kept"))
    for name in ("demo", "kept"):
        filled.append_from_spool(
            name, WORKER, 1, previous_offset=0, offset=9,
            samples=[sample], steps=[report], evaluations=[evaluation], events=[event],
        )  # fmt: skip
        filled.add_request(name, "stop", at=1.0)
    filled.delete_run("demo")
    with stores.open_store(store_url) as again, again._database.reading() as connection:
        tables = ["runs", "spools", "samples", "step_reports", "evaluations", "events", "requests"]
        for table in tables:
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 1, table
    filled.create_run(*make_run())
    assert (filled.samples("demo"), filled.events("demo"), filled.spool_offset("demo", WORKER, 1)) == (
        [],
        [],
        0,
    )


def test_text_that_no_database_holds_is_mended(filled, make_run):
    _, state = make_run()
    state = dataclasses.replace(state, message="null \x00 half \ud800 whole 😀")
    filled.save_state("demo", state, at=1.0)
    assert filled.get_run("demo").message == "null \ufffd half \ufffd whole 😀"
    assert filled.load_state("demo") == state


def test_a_phase_of_a_newer_program_is_refused(filled):
    with filled._database.writing() as connection:
        connection.exec_driver_sql("UPDATE runs SET phase = 'levitating'")
    for call in (filled.list_runs, lambda: filled.get_run("demo")):
        with pytest.raises(errors.StoreError, match="unknown JobPhase 'levitating'"):
            call()


SUBMIT = runs.Submit(key="ann/1", fingerprint="abc")


def test_a_submit_is_known_by_its_key(store, make_run):
    assert store.submitted(SUBMIT) is None
    store.create_run(*make_run(), submit=SUBMIT)
    assert store.submitted(SUBMIT) == "demo"
    assert store.submitted(runs.Submit(key="ann/2", fingerprint="abc")) is None
    with pytest.raises(errors.Conflict, match="another job was submitted with the key 'ann/1': demo"):
        store.submitted(runs.Submit(key="ann/1", fingerprint="else"))


def test_a_key_makes_one_run(store, make_run):
    store.create_run(*make_run(), submit=SUBMIT)
    with pytest.raises(errors.Conflict, match="submitted with the key 'ann/1' already"):
        store.create_run(*make_run("demo-2"), submit=SUBMIT)
    assert [run.name for run in store.list_runs()] == ["demo"]
    store.delete_run("demo")
    assert store.submitted(SUBMIT) is None
