"""Whole lives of real jobs on this machine, their processes killed at every place."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from support import control_groups, kills, leftovers
from support.shell_jobs import UNTIL_ENOUGH, Submit, enough, fill, shell_job

from paceline import specs
from paceline.engines.local import machines, processes
from paceline.engines.local.folders import RunFolder
from paceline.errors import Conflict, EngineError, InvalidInput, NotFound, StoreError, WaitTimeout
from paceline.model.jobs.job_specs import CleanUp, CpuPolicy, Host, MemoryGrowth, RestartPolicy, RoleSpec
from paceline.model.jobs.runs import Run
from paceline.model.jobs.runs import Submit as SubmitKey
from paceline.model.jobs.statuses import ExitKind, JobPhase, ReplicaPhase
from paceline.model.roles import ReplicaId, Role
from paceline.services import logs
from paceline.services.local import jobs, spec_changes, state_dirs, supervisors
from paceline.stores import Store, open_store

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system needs root")
PS0, W0, W1 = ReplicaId(Role.PS, 0), ReplicaId(Role.WORKER, 0), ReplicaId(Role.WORKER, 1)
ONCE = 'if [ -e "{run_dir}/{role}-{index}" ]; then exit 0; fi; touch "{run_dir}/{role}-{index}"; '


def until(condition: Callable[[], object], seconds: float = 240.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def ended(api: jobs.Jobs, run: Run, seconds: float = 240.0) -> Run:
    """Wait for the end, and see that nothing is left."""
    run = api.wait(run.name, timeout_seconds=seconds)
    assert leftovers.find(run.spec, RunFolder.of(run)) == []
    until(lambda: not supervisors.is_supervised(RunFolder.of(run)))
    return run


def output(run: Run, replica: ReplicaId) -> list[str]:
    reader = logs.FolderReader(RunFolder.of(run), logs.LogSelection(replica=replica.__eq__))
    return [line.text for line in logs.lines(reader)]


def agent_pid(run: Run, replica: ReplicaId, attempt: int = 1) -> int:
    pid = processes.agent_pid(RunFolder.of(run).config(replica, attempt))
    assert pid is not None
    return pid


def running(api: jobs.Jobs, run: Run) -> Run:
    return api.wait(run.name, timeout_seconds=240, until=lambda run: run.phase is JobPhase.RUNNING)


def test_a_job_succeeds_and_its_ps_are_ended_on_request(api: jobs.Jobs, submit: Submit) -> None:
    run = submit(shell_job("echo {role} {index} of {replicas.worker}; " + UNTIL_ENOUGH))
    until(lambda: api.store.samples(run.name))
    enough(run)
    run = ended(api, run)
    assert run.phase is JobPhase.SUCCEEDED
    assert output(run, W1) == ["worker 1 of 2"]
    rows = {row.replica: row for row in api.store.replicas(run.name)}
    assert rows[PS0].phase is ReplicaPhase.STOPPED
    reason = rows[PS0].exit
    assert reason is not None
    # It would have slept for ten minutes, and was not killed.
    assert reason.signal == signal.SIGTERM


def test_a_job_fails_with_the_reason_of_the_replica(api: jobs.Jobs, submit: Submit) -> None:
    run = ended(api, submit(shell_job("echo broken >&2; exit 7", limit=1)))
    assert run.phase is JobPhase.FAILED
    assert "code 7" in run.message
    assert "after 1 restarts" in run.message
    assert "broken" in output(run, W0) + output(run, W1)


def test_a_command_that_is_not_there_fails_at_once(api: jobs.Jobs, submit: Submit) -> None:
    spec = shell_job("true")
    missing = dataclasses.replace(spec.roles[1], command=("no-such-command-here",))
    run = ended(api, submit(dataclasses.replace(spec, roles=(spec.roles[0], missing))))
    assert run.phase is JobPhase.FAILED
    assert "no-such-command-here" in run.message


def test_a_stopped_job_can_be_resumed_and_then_succeed(api: jobs.Jobs, submit: Submit) -> None:
    run = running(api, submit(shell_job(ONCE + "exec sleep 600")))
    api.stop(run.name)
    assert ended(api, run).phase is JobPhase.STOPPED
    with pytest.raises(Conflict, match="has ended already"):
        api.stop(run.name)
    api.resume(run.name)
    assert ended(api, run).phase is JobPhase.SUCCEEDED
    assert {row.attempt for row in api.store.replicas(run.name)} == {2}
    with pytest.raises(Conflict, match="nothing is left to do"):
        api.resume(run.name)


def test_a_job_that_is_resumed_from_another_shell_says_what_differs(
    api: jobs.Jobs, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = running(api, submit(shell_job(ONCE + "exec sleep 600")))
    assert not any("another shell" in note for note in api.get(run.name).notes)
    api.stop(run.name)
    assert ended(api, run).phase is JobPhase.STOPPED
    monkeypatch.setenv("WHERE_DATA_IS", "/elsewhere")
    api.resume(run.name)
    resumed = ended(api, run)
    assert resumed.phase is JobPhase.SUCCEEDED
    expected = "it goes on with the environment of another shell than its first (new: WHERE_DATA_IS)"
    assert expected in resumed.notes


@pytest.mark.parametrize("victim", [PS0, W0])
def test_a_killed_agent_takes_its_command_along_and_is_launched_again(
    api: jobs.Jobs, submit: Submit, victim: ReplicaId
) -> None:
    run = running(api, submit(shell_job(UNTIL_ENOUGH, ps="sleep 600 & wait")))
    os.kill(agent_pid(run, victim), signal.SIGKILL)
    until(lambda: processes.agent_pid(RunFolder.of(run).config(victim, 2)))
    enough(run)
    assert ended(api, run).phase is JobPhase.SUCCEEDED
    kinds = [
        e.message for _, e in api.store.events(run.name) if e.kind == "replica-exited" and e.replica == victim
    ]
    assert "signal 9" in kinds[0]


def test_a_killed_supervisor_is_replaced_and_the_replicas_do_not_notice(
    api: jobs.Jobs, submit: Submit
) -> None:
    counting = UNTIL_ENOUGH.replace("do sleep 0.05", "do i=$((i + 1)); echo $i; sleep 0.05")
    run = running(api, submit(shell_job(f"i=0; {counting}")))
    before = agent_pid(run, W0)
    guard, supervisor = leftovers.supervisor_pids(RunFolder.of(run))
    assert api.supervisor_pids(run) == (guard, supervisor)
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: any(e.kind == "supervisor-replaced" for _, e in api.store.events(run.name)))
    assert agent_pid(run, W0) == before
    assert not api.is_lost(run)
    until(lambda: len(api.store.samples(run.name, replica=W0)) >= 2)
    enough(run)
    assert ended(api, run).phase is JobPhase.SUCCEEDED
    printed = output(run, W0)
    assert printed == [str(i + 1) for i in range(len(printed))] != []
    sampled = [sample.at for sample in api.store.samples(run.name, replica=W0)]
    assert len(sampled) == len(set(sampled)) >= 2


def test_a_job_whose_guard_and_supervisor_are_killed_is_lost_until_it_is_resumed(
    api: jobs.Jobs, submit: Submit
) -> None:
    run = running(api, submit(shell_job(UNTIL_ENOUGH)))
    kills.kill(leftovers.supervisor_pids(RunFolder.of(run)))
    until(lambda: api.is_lost(run))
    assert api.supervisor_pids(run) == ()
    with pytest.raises(Conflict, match="job is lost: its supervisor died"):
        api.wait(run.name, timeout_seconds=5)
    alive = agent_pid(run, PS0)
    api.resume(run.name)
    assert agent_pid(run, PS0) == alive
    with pytest.raises(Conflict, match="is running already"):
        api.resume(run.name)
    enough(run)
    assert ended(api, run).phase is JobPhase.SUCCEEDED


def test_a_lost_job_can_be_stopped_and_deleted(api: jobs.Jobs, submit: Submit) -> None:
    run = running(api, submit(shell_job("sleep 600")))
    kills.kill(leftovers.supervisor_pids(RunFolder.of(run)))
    until(lambda: api.is_lost(run))
    with pytest.raises(Conflict, match="is running"):
        api.delete(run.name)
    api.delete(run.name, force=True, timeout_seconds=240)
    with pytest.raises(NotFound):
        api.get(run.name)
    assert not Path(run.directory).exists()
    assert leftovers.find(run.spec, RunFolder.of(run)) == []


def test_a_replica_that_ignores_sigterm_is_killed_after_its_grace(api: jobs.Jobs, submit: Submit) -> None:
    run = running(api, submit(shell_job("trap '' TERM; while :; do sleep 0.1; done")))
    asked = time.monotonic()
    api.stop(run.name)
    assert ended(api, run).phase is JobPhase.STOPPED
    assert time.monotonic() - asked > 1.5


@pytest.mark.parametrize(
    "is_replaced", [False, True], ids=["by one supervisor", "with a new supervisor half-way"]
)
def test_ps_live_until_the_last_trainer_has_ended(api: jobs.Jobs, submit: Submit, is_replaced: bool) -> None:
    gone = '"{run_dir}/ps is gone"'
    ps = f"trap 'touch {gone}; exit 0' TERM; sleep 600 & wait"
    worker = f"trap 'sleep 1.{{index}}; [ -e {gone} ] || echo ps is there; exit 0' TERM; sleep 600 & wait"
    run = running(api, submit(shell_job(worker, ps=ps, grace_seconds=60)))
    api.stop(run.name)
    if is_replaced:
        until(lambda: api.get(run.name).phase is JobPhase.STOPPING)
        os.kill(leftovers.supervisor_pids(RunFolder.of(run))[1], signal.SIGKILL)
    assert ended(api, run).phase is JobPhase.STOPPED
    assert "ps is there" in output(run, W0)
    assert "ps is there" in output(run, W1)
    assert (Path(run.directory) / "ps is gone").exists()
    if is_replaced:
        assert any(e.kind == "supervisor-replaced" for _, e in api.store.events(run.name))


def test_ps_end_although_a_trainer_does_not_want_to(api: jobs.Jobs, submit: Submit) -> None:
    deaf = "trap '' TERM; while :; do sleep 0.1; done"
    run = running(api, submit(shell_job(deaf, ps="trap 'sleep 0.5; exit 0' TERM; sleep 600 & wait")))
    api.stop(run.name)
    assert ended(api, run).phase is JobPhase.STOPPED
    rows = {row.replica: row for row in api.store.replicas(run.name)}
    ends = [row.exit.kind for row in (rows[PS0], rows[W0], rows[W1]) if row.exit is not None]
    assert ends == [ExitKind.COMPLETED, ExitKind.SIGNAL, ExitKind.SIGNAL], "the PS had a grace of its own"


def test_the_deadline_ends_the_job(api: jobs.Jobs, submit: Submit) -> None:
    run = ended(api, submit(shell_job("sleep 600", active_deadline_seconds=1.5)))
    assert (run.phase, run.message) == (JobPhase.FAILED, "the active deadline of 1.5 s passed")


@control_groups.needed
def test_an_out_of_memory_kill_is_named_and_memory_grows(api: jobs.Jobs, submit: Submit) -> None:
    eat = "exec python3 -c \"x = b'1' * (60 << 20); import time; time.sleep(0.5)\""
    worker = RoleSpec(
        role=Role.WORKER,
        command=("sh", "-c", eat),
        memory_bytes=32 << 20,
        memory_growth=MemoryGrowth(factor=4.0),
        restart=RestartPolicy(limit=2, backoff_seconds=0.1),
    )
    run = ended(api, submit(dataclasses.replace(shell_job("true"), roles=(worker,))))
    assert run.phase is JobPhase.SUCCEEDED
    exits = [e.message for _, e in api.store.events(run.name) if e.kind == "replica-exited"]
    assert exits[0].startswith(ExitKind.OUT_OF_MEMORY)
    assert api.store.replicas(run.name)[0].memory_bytes == 128 << 20


@control_groups.needed
def test_an_agent_that_the_kernel_kills_for_memory_is_named_and_memory_grows(
    api: jobs.Jobs, submit: Submit
) -> None:
    worker = RoleSpec(
        role=Role.WORKER,
        command=("true",),
        memory_bytes=2 << 20,
        memory_growth=MemoryGrowth(factor=16.0),
        restart=RestartPolicy(limit=2, backoff_seconds=0.1),
    )
    run = ended(api, submit(dataclasses.replace(shell_job("true"), roles=(worker,))))
    assert run.phase is JobPhase.SUCCEEDED
    exits = [e.message for _, e in api.store.events(run.name) if e.kind == "replica-exited"]
    assert exits[0].startswith(f"{ExitKind.OUT_OF_MEMORY}: the kernel killed the agent")
    assert api.store.replicas(run.name)[0].memory_bytes == 32 << 20


def test_emulated_hosts_give_network_samples_or_say_why_not(api: jobs.Jobs, submit: Submit) -> None:
    run = submit(shell_job(UNTIL_ENOUGH, hosts=(Host(name="a"), Host(name="b"))))
    until(lambda: len(api.store.samples(run.name, replica=W0)) >= 2)
    enough(run)
    ended(api, run)
    sample = api.store.samples(run.name, replica=W0)[-1]
    if not machines.read().lacks_namespaces:
        assert sample.network_received_bytes is not None
    else:
        assert any("network" in note for note in run.notes)


@pytest.mark.parametrize(("clean_up", "left"), [(CleanUp.RUNNING, True), (CleanUp.ALL, False)])
def test_scratch_files_go_by_the_clean_up_policy(
    api: jobs.Jobs, submit: Submit, clean_up: CleanUp, left: bool
) -> None:
    run = ended(api, submit(shell_job('touch "$TMPDIR/file"', clean_up=clean_up)))
    assert (RunFolder.of(run).scratch(W0) / "file").exists() is left
    assert output(run, W0) == []


def test_names_stay_unique_and_prune_removes_what_has_ended(api: jobs.Jobs, submit: Submit) -> None:
    first = ended(api, submit(shell_job("true")))
    second = running(api, submit(shell_job("sleep 600")))
    assert (first.name, second.name) == ("job", "job-2")
    assert api.prune(older_than_seconds=0, dry_run=True) == ["job"]
    assert api.prune(older_than_seconds=3600) == []
    assert api.prune(older_than_seconds=0) == ["job"]
    assert [run.name for run in api.runs()] == ["job-2"]


def test_the_folder_of_a_run_that_the_store_does_not_know_stays(api: jobs.Jobs, submit: Submit) -> None:
    """It may be a run of another store, or of one that was put back from a backup."""
    checkpoint = api.home.folder("job").path / "checkpoints" / "model.data"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_text("weights")
    assert ended(api, submit(shell_job("true"))).name == "job-2"
    assert checkpoint.read_text() == "weights"
    with pytest.raises(FileExistsError):
        api.home.folder("job").create()
    assert checkpoint.read_text() == "weights"


def test_a_job_file_is_stored_as_it_is_whatever_the_locale(
    api: jobs.Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Path.write_text

    def as_latin(path: Path, text: str, encoding: str = "latin-1", **more: str) -> int:
        return written(path, text, encoding, **more)

    monkeypatch.setattr(Path, "write_text", as_latin)
    run = ended(api, api.submit(shell_job("true"), source="# 搜索团队\n", base=tmp_path))
    assert (RunFolder.of(run).path / "job.yaml").read_bytes() == "# 搜索团队\n".encode()


def test_a_run_is_removed_when_its_time_to_live_has_passed(api: jobs.Jobs, submit: Submit) -> None:
    """No user asks for it, no server runs and no other job is submitted."""
    kept = ended(api, submit(shell_job("true")))
    gone = ended(api, submit(shell_job("true", ttl_after_finished_seconds=0.0)))
    until(lambda: [run.name for run in api.runs()] == [kept.name])
    until(lambda: not RunFolder.of(gone).path.exists())
    assert api.prune_expired() == []


def test_a_stopped_run_outlives_its_time_to_live_with_its_checkpoints(api: jobs.Jobs, submit: Submit) -> None:
    run = running(api, submit(shell_job("sleep 600", ttl_after_finished_seconds=0.0)))
    api.stop(run.name)
    assert api.wait(run.name, timeout_seconds=240).phase is JobPhase.STOPPED
    assert api.prune_expired() == []
    later = jobs.Jobs(api.home, api.store, clock=lambda: time.time() + 1e6)
    assert later.prune_expired() == []
    assert api.get(run.name)


def test_waiting_too_long_is_told_and_the_job_goes_on(api: jobs.Jobs, submit: Submit) -> None:
    run = submit(shell_job("sleep 600"))
    with pytest.raises(WaitTimeout, match=r"after 0\.5 s"):
        api.wait(run.name, timeout_seconds=0.5)
    assert not api.is_lost(run)


def test_a_job_that_does_not_fit_leaves_nothing_behind(api: jobs.Jobs, submit: Submit) -> None:
    spec = shell_job("true")
    big = dataclasses.replace(spec.roles[0], cpu_cores=4000.0)
    with pytest.raises(EngineError, match="asks for 4000 CPU"):
        submit(dataclasses.replace(spec, roles=(big,)))
    assert api.runs() == []
    assert list(api.home.runs.glob("*")) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@needs_root
def test_a_full_disk_is_a_clear_error_and_leaves_nothing(small_disk: Path, tmp_path: Path) -> None:
    home = state_dirs.Home.from_environment({"PACELINE_HOME": str(small_disk / "home")})
    with open_store(home.store_url) as store:
        api = jobs.Jobs(home, store)
        fill(small_disk / "filler", 4096)
        with pytest.raises((StoreError, EngineError)) as raised:
            api.submit(shell_job("true"), source="", base=tmp_path)
        assert raised.value.hint
        (small_disk / "filler").unlink()
        assert api.runs() == []
        assert api.wait(api.submit(shell_job("true"), source="", base=tmp_path).name, timeout_seconds=240)


@needs_root
def test_a_running_job_survives_a_disk_that_is_full_for_a_while(small_disk: Path, tmp_path: Path) -> None:
    home = state_dirs.Home.from_environment({"PACELINE_HOME": str(small_disk / "home")})
    with open_store(home.store_url) as store:
        api = jobs.Jobs(home, store)
        run = api.submit(shell_job(UNTIL_ENOUGH), source="", base=tmp_path)
        running(api, run)
        fill(small_disk / "filler", 512)
        time.sleep(1.5)
        (small_disk / "filler").unlink()
        enough(run)
        assert ended(api, run).phase is JobPhase.SUCCEEDED


@needs_root
def test_a_job_that_was_taken_begins_when_there_is_room(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = state_dirs.Home.from_environment({"PACELINE_HOME": str(small_disk / "home")})
    start = supervisors.start
    with open_store(home.store_url) as store:
        api = jobs.Jobs(home, store)
        # The disk becomes full between the answer and the first step of the job's supervisor.
        monkeypatch.setattr(supervisors, "start", lambda *_: None)
        run = api.submit(shell_job("true"), source="", base=tmp_path)
        fill(small_disk / "filler", 4096)
        start(home.path, home.store_url, run.name, RunFolder.of(run))
        time.sleep(1.0)
        assert supervisors.is_supervised(RunFolder.of(run))
        (small_disk / "filler").unlink()
        assert ended(api, run).phase is JobPhase.SUCCEEDED


@needs_root
def test_a_read_only_state_folder_is_a_clear_error(small_disk: Path, tmp_path: Path) -> None:
    home = state_dirs.Home.from_environment({"PACELINE_HOME": str(small_disk / "home")})
    with open_store(home.store_url):
        pass
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreError) as raised, open_store(home.store_url) as store:
        jobs.Jobs(home, store).submit(shell_job("true"), source="", base=tmp_path)
    assert "read-only" in raised.value.message.lower()
    assert raised.value.hint


def workers_of(api: jobs.Jobs, run: Run) -> dict[ReplicaId, ReplicaPhase]:
    return {row.replica: row.phase for row in api.store.replicas(run.name) if row.replica.role is Role.WORKER}


def test_a_running_job_gets_more_workers_and_loses_them_again(api: jobs.Jobs, submit: Submit) -> None:
    w2 = ReplicaId(Role.WORKER, 2)
    script = (
        'echo "{worker_hosts} $PACELINE_SPARE_WORKERS"; until [ -e "{run_dir}/done" ]; do sleep 0.1; done'
    )
    run = running(api, submit(shell_job(script)))
    api.scale(run.name, 3)
    until(lambda: workers_of(api, run).get(w2) is ReplicaPhase.RUNNING)
    running(api, run)
    until(lambda: output(run, w2))
    hosts, spare = output(run, w2)[0].split()
    before, room = output(run, W0)[0].split()
    assert hosts.split(",") == [*before.split(","), room.split(",")[0]], "its address was set aside before"
    assert spare.split(",") == room.split(",")[1:]
    os.kill(supervisors.pids(RunFolder.of(run))[1], signal.SIGKILL)
    api.scale(run.name, 1)
    until(lambda: workers_of(api, run)[w2] is workers_of(api, run)[W1] is ReplicaPhase.STOPPED)
    assert api.get(run.name).spec.role(Role.WORKER).replicas == 1
    api.scale(run.name, 2)
    until(lambda: processes.agent_pid(RunFolder.of(run).config(W1, 2)))
    (RunFolder.of(run).path / "done").touch()
    assert ended(api, run).phase is JobPhase.SUCCEEDED
    assert "3 workers are wanted" in [e.message for _, e in api.store.events(run.name) if e.kind == "scaled"]
    assert [s.replicas for s in api.runs()] == ["ps 0/1, worker 0/2"]
    with pytest.raises(Conflict, match="does not run"):
        api.scale(run.name, 3)


def test_what_cannot_be_scaled_is_refused_and_left_as_it_is(api: jobs.Jobs, submit: Submit) -> None:
    spec = shell_job("sleep 600", training={"consistency": {"mode": "synchronous"}})
    run = running(api, submit(spec))
    with pytest.raises(Conflict, match="wait for each other"):
        api.scale(run.name, 3)
    many = running(api, submit(shell_job("sleep 600")))
    with pytest.raises(Conflict, match="18 workers at most, not 19"):
        api.scale(many.name, 19)
    hosted = submit(shell_job("sleep 600", hosts=(Host(name="a"), Host(name="b"))))
    with pytest.raises(EngineError, match="emulated hosts"):
        api.scale(running(api, hosted).name, 3)
    cores = machines.read().cores
    worker = RoleSpec(
        role=Role.WORKER, cpu_cores=1.0, cpu_policy=CpuPolicy.EXCLUSIVE, command=("sleep", "600")
    )
    exclusive = running(api, submit(dataclasses.replace(shell_job(""), roles=(worker,))))
    with pytest.raises(EngineError, match="exclusive cores"):
        api.scale(exclusive.name, 1 + len(cores))
    for each in (run, many, hosted, exclusive):
        assert api.get(each.name).spec == each.spec
        api.stop(each.name)


KEY = SubmitKey(key="ann/1", fingerprint="abc")


def test_a_submit_with_a_key_makes_one_run_however_often_and_at_once(api: jobs.Jobs, tmp_path: Path) -> None:
    def submitted() -> str:
        return api.submit(shell_job("exec sleep 60"), source="", base=tmp_path, submit=KEY).name

    with ThreadPoolExecutor(4) as pool:
        names = list(pool.map(lambda _: submitted(), range(4)))
    assert names == ["job"] * 4
    assert [run.name for run in api.runs()] == ["job"]
    with pytest.raises(Conflict, match="another job was submitted with the key"):
        api.submit(
            shell_job("exit"), source="", base=tmp_path, submit=dataclasses.replace(KEY, fingerprint="else")
        )
    api.stop("job")
    ended(api, api.get("job"))
    assert submitted() == "job"
    assert api.get("job").phase is JobPhase.STOPPED


def test_a_submit_is_taken_up_where_the_caller_died(
    api: jobs.Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(supervisors, "start", killed)
        with pytest.raises(KeyboardInterrupt):
            api.submit(shell_job("exec sleep 60"), source="", base=tmp_path, submit=KEY)
    assert api.is_lost(api.get("job"))
    run = api.submit(shell_job("exec sleep 60"), source="", base=tmp_path, submit=KEY)
    running(api, run)
    api.stop("job")
    ended(api, run)


def running_and_changed(api: jobs.Jobs, tmp_path: Path) -> tuple[Run, str]:
    """Return a job that runs, and its file with a worker more."""
    source = specs.dump_job(shell_job("exec sleep 60"))
    run = api.submit(specs.parse_job(source).spec, source=source, base=tmp_path)
    running(api, run)
    return run, source.replace("replicas: 2", "replicas: 3")


def test_a_job_that_runs_goes_on_with_another_file_and_back(api: jobs.Jobs, tmp_path: Path) -> None:
    run, changed = running_and_changed(api, tmp_path)
    api.change("job", changed)
    with pytest.raises(Conflict, match="job is being changed already"):
        api.change("job", changed)
    until(lambda: api.store.waiting_change("job") is None)
    assert len(running(api, run).spec.replicas()) == 4
    assert api.get("job").source == changed
    (change,) = api.store.spec_changes("job")
    assert (change.before, change.source) == (run.source, changed)
    assert (folder := RunFolder.of(run)).path.joinpath("job.yaml").read_text() == changed
    assert "changed" in [event.kind for _, event in api.events("job")]

    api.change("job", change.before)
    until(lambda: api.store.waiting_change("job") is None)
    assert len(running(api, run).spec.replicas()) == 3
    api.stop("job")
    assert ended(api, run).phase is JobPhase.STOPPED
    assert not supervisors.is_supervised(folder)


def test_a_job_that_has_ended_goes_on_with_another_file(api: jobs.Jobs, tmp_path: Path) -> None:
    run, changed = running_and_changed(api, tmp_path)
    api.stop("job")
    ended(api, run)
    api.change("job", changed)
    assert len(running(api, run).spec.replicas()) == 4
    api.stop("job")
    ended(api, run)


def test_a_change_outlives_the_supervisor_that_should_make_it(api: jobs.Jobs, tmp_path: Path) -> None:
    run, changed = running_and_changed(api, tmp_path)
    folder = RunFolder.of(run)
    # Stopped in the middle of a transaction it would keep the store locked for ever.
    with contextlib.closing(sqlite3.connect(api.home.path / "paceline.db", timeout=240)) as store:
        store.execute("BEGIN IMMEDIATE")
        for pid in supervisors.pids(folder):
            os.kill(pid, signal.SIGSTOP)
        held = supervisors.pids(folder)
        until(lambda: all(psutil.Process(pid).status() == psutil.STATUS_STOPPED for pid in held))
    api.change("job", changed)
    kills.kill(held)
    until(lambda: not supervisors.is_supervised(folder))
    assert api.is_lost(api.get("job"))
    api.resume("job")
    until(lambda: api.store.waiting_change("job") is None)
    assert len(running(api, run).spec.replicas()) == 4
    api.stop("job")
    ended(api, run)


def test_what_cannot_be_done_leaves_the_job_as_it_was(
    api: jobs.Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, changed = running_and_changed(api, tmp_path)
    with pytest.raises(InvalidInput, match="something other than job"):
        api.change("job", changed.replace("sleep 600", "sleep 601"))
    with pytest.raises(InvalidInput):
        api.change("job", "a: b")
    # That there is no place for it is not known before it has ended.
    larger = changed.replace("replicas: 3", "replicas: 3\n      cpu: 4096\n      cpu_policy: exclusive")
    api.change("job", larger)
    until(lambda: api.store.waiting_change("job") is None)
    assert len(running(api, run).spec.replicas()) == 3
    assert api.get("job").source == run.source
    assert api.store.spec_changes("job") == []
    assert "not-changed" in [event.kind for _, event in api.events("job")]
    api.stop("job")
    ended(api, run)


def test_a_process_that_refuses_a_change_may_die_before_the_job_goes_on(
    api: jobs.Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, changed = running_and_changed(api, tmp_path)
    api.stop("job")
    ended(api, run)
    larger = changed.replace("replicas: 3", "replicas: 3\n      cpu: 4096\n      cpu_policy: exclusive")
    api.store.request_change("job", larger, at=0.0)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "save_state", killed)
        with pytest.raises(KeyboardInterrupt):
            spec_changes.carry_on(api.registry, "job")
    assert api.store.waiting_change("job") is not None
    assert spec_changes.carry_on(api.registry, "job")
    assert api.store.waiting_change("job") is None
    assert not api.get("job").phase.is_final
    api.resume("job")
    running(api, run)
    api.stop("job")
    ended(api, run)


def test_a_job_that_has_succeeded_is_not_changed(api: jobs.Jobs, tmp_path: Path) -> None:
    source = specs.dump_job(shell_job("exit 0"))
    run = api.submit(specs.parse_job(source).spec, source=source, base=tmp_path)
    ended(api, run)
    with pytest.raises(Conflict, match="has succeeded"):
        api.change("job", source.replace("replicas: 2", "replicas: 3"))
    assert api.store.spec_changes("job") == []
