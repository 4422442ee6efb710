"""What verbs print and how they exit, over a store that is filled by hand."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from support.filled_homes import fill, spec_of

from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import JobEvent
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import ReplicaId
from paceline.services.local import state_dirs
from paceline.stores import open_store
from paceline.surfaces.cli.main import cli

Paceline = Callable[..., Result]


def document(result: Result) -> dict[str, object]:
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    assert found["apiVersion"] == "paceline.dev/v1alpha1"
    return found


def test_list_shows_a_row_for_each_job(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "first", submitted_at=1e9)
    fill(home, "second", submitted_at=2e9, phase=JobPhase.FAILED, message="worker-1: exit code 3")
    result = paceline("list")
    rows = result.stdout.splitlines()
    assert rows[0].split() == ["NAME", "PHASE", "REPLICAS", "RUNTIME", "AGE", "MESSAGE"]
    assert rows[1].split()[:2] == ["second", "failed"]
    assert rows[2].split()[:6] == ["first", "succeeded", "ps", "2,", "worker", "2"]
    assert "exit code 3" in rows[1]
    assert result.stderr.startswith("next: paceline get second")


def test_list_without_jobs_says_so_on_stderr(paceline: Paceline) -> None:
    result = paceline("list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "no jobs\nnext: paceline init job.yaml  |  paceline run job.yaml\n"


def test_quiet_says_nothing(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "first")
    assert paceline("list", "--quiet").stderr == ""
    assert paceline("-q", "get", "first").stderr == ""


def test_list_formats(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "first")
    found = document(paceline("list", "-o", "json"))
    assert found["kind"] == "RunList"
    (item,) = found["items"]  # type: ignore[misc]
    assert item["phase"] == "succeeded"
    assert item["submitted_at"] == "2001-09-09T01:46:40.000Z"
    assert item["duration_seconds"] == 10.0
    assert item["labels"] == {"team": "ads"}
    assert yaml.safe_load(paceline("list", "-o", "yaml").stdout) == found
    assert paceline("list", "-o", "name").stdout == "first\n"
    assert "team=ads" in paceline("list", "-o", "wide").stdout


def test_list_filters(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "good")
    fill(home, "bad", phase=JobPhase.FAILED)
    fill(home, "gone", phase=JobPhase.RUNNING)
    names = ("list", "-o", "name")
    assert paceline(*names, "--phase", "failed").stdout == "bad\n"
    assert paceline(*names, "--phase", "lost").stdout == "gone\n"
    assert paceline(*names, "-l", "team=ads", "--limit", "1").stdout == "gone\n"
    assert paceline(*names, "-l", "team=other").stdout == ""


def test_job_without_supervisor_is_lost(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "gone", phase=JobPhase.RUNNING)
    for arguments in (("list",), ("get", "gone"), ("describe", "gone"), ("top", "gone")):
        result = paceline(*arguments)
        assert "lost" in result.stdout
        assert "paceline resume gone" in result.stderr
    waited = paceline("wait", "gone")
    assert waited.exit_code == 1
    assert "hint: paceline resume gone" in waited.stderr


def test_get_shows_replicas(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "clicks")
    lines = paceline("get", "clicks").stdout.splitlines()
    assert lines[0].startswith("clicks  succeeded  after 10s")
    assert [line.split()[0] for line in lines[3:]] == ["ps-0", "ps-1", "worker-0", "worker-1"]
    found = document(paceline("get", "clicks", "-o", "json"))
    assert found["kind"] == "Run"
    assert [replica["replica"] for replica in found["replicas"]] == ["ps-0", "ps-1", "worker-0", "worker-1"]  # type: ignore[attr-defined]
    assert found["replicas"][0]["exit"] is None  # type: ignore[index]
    assert found["spec"]["roles"][0]["cpu_cores"] == 1  # type: ignore[index]
    assert paceline("get", "clicks", "-o", "name").stdout == "clicks\n"


def test_describe_tells_all(home: state_dirs.Home, paceline: Paceline) -> None:
    run = fill(home, "clicks")
    text = paceline("describe", "clicks").stdout
    for expected in ("python train.py", "Roles", "Replicas", "network is not measured", run.directory):
        assert expected in text
    assert document(paceline("describe", "clicks", "-o", "json"))["events"] == []


def test_describe_tells_what_is_seen_of_each_script(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "clicks")
    library, steps = "TensorFlow 2.21.0 on Python 3.11.7", "its steps, made by sessions; batch: fed"
    said = [("ps-0", library), ("worker-0", library), ("worker-0", steps), ("ps-1", library)]
    with open_store(home.store_url) as store:
        for replica, message in said:
            event = JobEvent(
                at=1e9, kind="instrumentation", message=message, replica=ReplicaId.parse(replica), attempt=1
            )
            store.append_events("clicks", [event])
    shown = paceline("describe", "clicks").stdout.partition("Seen in the scripts\n")[2].partition("\n\n")[0]
    assert shown.splitlines() == [
        f"ps-0, ps-1  {library}",
        f"worker-0    {library}; its steps, made by sessions;",
        "            batch: fed",
        "worker-1    nothing",
    ]


def test_describe_tells_the_facts_of_each_script(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "clicks")
    with open_store(home.store_url) as store:
        for attempt, message in [
            (0, "device_filters: yes"),
            (1, "device_filters: no"),
            (1, "a later one: 1"),
        ]:
            event = JobEvent(
                at=1e9, kind="fact", message=message, replica=ReplicaId.parse("worker-0"), attempt=attempt
            )
            store.append_events("clicks", [event])
    text = paceline("describe", "clicks").stdout
    shown = text.partition("Seen in the scripts\n")[2].partition("\n\n")[0]
    assert shown.splitlines() == ["ps-0, ps-1, worker-1  nothing", "worker-0              device_filters: no"]
    assert "later one" not in text
    found = document(paceline("describe", "clicks", "-o", "json"))
    assert found["script_facts"] == {"worker-0": {"device_filters": False}}


def test_top_shows_means_imbalance_and_the_hot_ps(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "clicks", loads=[0.9, 0.1], steps=3)
    text = paceline("top", "clicks").stdout
    assert "step 30 of 100" in text
    assert "5120 examples/s" in text
    assert "AUC 0.75 at step 20" in text
    assert "ps 2 replicas  1.00 cores  hot: ps-0\nCPU max/mean 1.80, Gini 0.40\n" in text
    assert "ps-0 HOT  succeeded  0.90/1    10%  512M/1.0G" in text
    assert "- not measured" in text
    found = document(paceline("top", "clicks", "-o", "json"))
    ps, worker = found["roles"]  # type: ignore[misc]
    assert ps["imbalances"] == [
        {"resource": "CPU", "max_over_mean": pytest.approx(1.8), "gini": pytest.approx(0.4), "hot": "ps-0"}
    ]
    assert ps["replicas"][0]["sent_bytes_per_second"] is None
    assert worker["replicas"][0]["input_wait_share"] == 0.25
    assert found["whole_run"] is True


def test_top_finds_the_job(home: state_dirs.Home, paceline: Paceline) -> None:
    assert paceline("top").exit_code == 3
    fill(home, "only")
    assert paceline("top").stdout.startswith("only")
    fill(home, "other", submitted_at=2e9)
    result = paceline("top")
    assert result.exit_code == 2
    assert "paceline top other" in result.stderr
    fill(home, "going", submitted_at=1e8, phase=JobPhase.RUNNING)
    assert paceline("top").stdout.startswith("going")


def test_unknown_job_is_3_with_names_that_come_near(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "clicks")
    for verb in ("get", "describe", "top", "logs", "stop", "resume", "delete", "wait"):
        result = paceline(verb, "clcks")
        assert result.exit_code == 3, verb
        assert result.stderr.startswith("error: there is no job 'clcks'")
        assert "clicks" in result.stderr.partition("hint: ")[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("lst",), "'list'"),
        (("list", "--otput", "json"), "--output"),
        (("get",), "NAME"),
        (("wait", "x", "--timeout", "soon"), "90s"),
        (("list", "-o", "xml"), "json"),
        (("lint",), "--manifest"),
    ],
)
def test_usage_errors_are_2_with_a_hint(paceline: Paceline, arguments: tuple[str, ...], said: str) -> None:
    result = paceline(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert said in result.stderr
    assert result.stderr.startswith("error: ")
    assert "hint: paceline" in result.stderr


@pytest.mark.parametrize(
    ("phase", "goal", "code"),
    [
        (JobPhase.SUCCEEDED, "succeeded", 0),
        (JobPhase.FAILED, "succeeded", 6),
        (JobPhase.STOPPED, "succeeded", 6),
        (JobPhase.FAILED, "finished", 0),
        (JobPhase.SUCCEEDED, "running", 0),
        (JobPhase.FAILED, "running", 6),
    ],
)
def test_wait_exits_by_how_the_job_ended(
    home: state_dirs.Home, paceline: Paceline, phase: JobPhase, goal: str, code: int
) -> None:
    fill(home, "clicks", phase=phase)
    assert paceline("wait", "clicks", "--for", goal).exit_code == code


def test_several_names_go_on_after_an_error(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "one")
    fill(home, "two")
    result = paceline("delete", "one", "none", "two", "two")
    assert result.exit_code == 3
    assert result.stdout == "one deleted\ntwo deleted\n"
    assert paceline("list", "-o", "name").stdout == ""


def test_dry_runs_change_nothing(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "done")
    fill(home, "going", phase=JobPhase.RUNNING)
    assert paceline("delete", "--dry-run", "done").stdout.startswith("done would be deleted (succeeded)")
    assert paceline("delete", "--dry-run", "going").exit_code == 1
    assert paceline("delete", "--dry-run", "--force", "going").exit_code == 0
    assert paceline("stop", "--dry-run", "going").stdout == "going would be stopped (running)\n"
    assert paceline("stop", "--dry-run", "done").exit_code == 1
    assert paceline("resume", "--dry-run", "going").stdout == "going would be resumed (lost)\n"
    assert paceline("resume", "--dry-run", "done").exit_code == 1
    assert paceline("prune", "--older-than", "7d", "--dry-run").stdout == "done would be deleted\n"
    assert paceline("list", "-o", "name", "-q").stdout.split() == ["going", "done"]
    assert paceline("prune", "--older-than", "7d").stdout == "done deleted\n"
    assert paceline("prune", "--older-than", "7d", "-q").stdout == ""


def test_old_jobs_are_kept_in_less_detail(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "done", loads=(0.5, 0.9), steps=3)
    said = "kept without samples, steps and traces\n"
    assert paceline("prune", "--dry-run").stdout == f"done would be {said}"
    pruned = paceline("prune")
    assert pruned.stdout == f"done {said}"
    assert "the store has " in pruned.stderr
    again = paceline("prune")
    assert (again.stdout, again.exit_code) == ("", 0)
    assert "every job is kept as it is" in again.stderr
    described = " ".join(paceline("describe", "done").stdout.split())
    assert "samples, steps and traces are kept no more (PACELINE_KEEP_MINUTES)" in described
    assert paceline("list", "--search", "TRAIN-", "-o", "name").stdout == "done\n"
    assert paceline("list", "--search", "other", "-o", "name").stdout == ""


@pytest.mark.parametrize("verb", ["submit", "run"])
def test_dry_run_of_a_submit_shows_what_each_replica_gets(
    home: state_dirs.Home, paceline: Paceline, tmp_path: Path, verb: str
) -> None:
    fill(home, "clicks")
    file = tmp_path / "job.yaml"
    file.write_text(paceline("init", "-").stdout)
    result = paceline(verb, "--dry-run", str(file))
    assert result.exit_code == 0, result.stderr
    assert "would submit clicks-2: 4 replicas" in result.stdout
    assert "--ps_hosts=ps-0:PORT,ps-1:PORT" in result.stdout
    assert "--job_name=worker --task_index=1" in result.stdout
    assert "ps-0  on local, 1 CPU, 1.0G memory" in result.stdout
    found = document(paceline(verb, "--dry-run", str(file), "-o", "json"))
    assert found["cluster"]["worker"] == ["worker-0:PORT", "worker-1:PORT"]  # type: ignore[index]
    assert json.loads(found["replicas"][0]["environment"]["TF_CONFIG"])["task"] == {"type": "ps", "index": 0}  # type: ignore[index]
    assert not (home.runs / "clicks-2").exists()


def test_job_file_errors_show_every_problem_with_its_place(paceline: Paceline, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(
        "apiVersion: paceline.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: Bad Name}\n"
        "spec:\n  comand: [true]\n  roles: {worker: {replicas: 0}}\n"
    )
    result = paceline("submit", str(file))
    assert result.exit_code == 2
    assert "job.yaml:3:18" in result.stderr
    assert "did you mean 'command'?" in result.stderr
    assert "^" in result.stderr
    assert "Traceback" not in result.output


def test_missing_job_file_is_3(paceline: Paceline) -> None:
    result = paceline("run", "none.yaml")
    assert (result.exit_code, "none.yaml" in result.stderr) == (3, True)


def test_home_and_store_options_come_before_the_environment(
    home: state_dirs.Home, paceline: Paceline, tmp_path: Path
) -> None:
    fill(home, "here")
    other = tmp_path / "other"
    shutil.copytree(home.path, other)
    with open_store(f"sqlite:///{other / 'paceline.db'}") as store:
        store.delete_run("here")
    fill(state_dirs.Home.from_environment({"PACELINE_HOME": str(other)}), "there")
    result = paceline("list", "--home", str(other))
    assert result.stdout.splitlines()[1].startswith("there ")
    assert f"paceline --home {other} get there" in result.stderr
    assert paceline("--home", str(other), "list", "-o", "name").stdout == "there\n"
    assert paceline("list", "--store", f"sqlite:///{other / 'paceline.db'}", "-o", "name").stdout == "there\n"
    assert paceline("list", "-o", "name").stdout == "here\n"
    failed = paceline("get", "x", "--home", str(other))
    assert f"hint: List the jobs: paceline --home {other} list" in failed.stderr


def test_store_that_cannot_be_opened_is_1(paceline: Paceline) -> None:
    result = paceline("list", "--store", "mysql://nowhere/x")
    assert (result.exit_code, "Traceback" in result.output) == (1, False)


def test_colours_only_for_a_terminal(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "clicks", phase=JobPhase.FAILED)
    assert "\x1b[" not in paceline("list").output
    assert "\x1b[" in paceline("list", FORCE_COLOR="1").stdout
    assert "\x1b[3" not in paceline("list", FORCE_COLOR="1", NO_COLOR="1").stdout
    coloured = CliRunner().invoke(cli, ["get", "none"], color=True)
    assert "\x1b[" in coloured.stderr
    plain = CliRunner().invoke(cli, ["get", "none"], color=True, env={"NO_COLOR": "1"})
    assert "\x1b[" not in plain.stderr


def test_a_bug_shows_its_traceback(home: state_dirs.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    from paceline.stores import stores

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(stores.Store, "list_runs", broken)
        assert isinstance(CliRunner().invoke(cli, ["list"]).exception, ZeroDivisionError)


def test_interrupt_is_130(home: state_dirs.Home, monkeypatch: pytest.MonkeyPatch, paceline: Paceline) -> None:
    from paceline.stores import stores

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stores.Store, "list_runs", interrupted)
        assert paceline("list").exit_code == 130


def test_logs_of_replicas(home: state_dirs.Home, paceline: Paceline) -> None:
    run = fill(home, "clicks")
    logs = Path(run.directory) / "logs"
    logs.mkdir(parents=True)
    (logs / "ps-0.1.log").write_text("one\ntwo\n")
    (logs / "worker-0.1.log").write_text("early\n")
    (logs / "worker-0.2.log").write_text("late\nlast")
    assert paceline("logs", "clicks").stdout.splitlines() == [
        "ps-0     | one", "ps-0     | two", "worker-0 | early", "worker-0 | late", "worker-0 | last",
    ]  # fmt: skip
    assert paceline("logs", "clicks", "--role", "ps", "--index", "0").stdout == "one\ntwo\n"
    assert paceline("logs", "clicks", "--role", "ps", "--tail", "1").stdout == "ps-0 | two\n"
    assert paceline("logs", "clicks", "--attempt", "2", "--no-prefix").stdout == "late\nlast\n"
    assert paceline("logs", "clicks", "-f", "--index", "0", "--no-prefix").stdout.count("\n") == 5
    missing = paceline("logs", "clicks", "--role", "chief")
    assert missing.exit_code == 3
    assert "ps-0, ps-1, worker-0" in missing.stderr
    shutil.rmtree(run.directory)


def test_hostile_names_do_not_reach_the_terminal(home: state_dirs.Home, paceline: Paceline) -> None:
    spec = JobSpec(name="x", command=("sh", "-c", "\x1b[2J"), roles=spec_of("x").roles)
    fill(home, "x", spec=spec, phase=JobPhase.FAILED, message="\x1b]0;title\x07 and\nmore")
    for verb in ("list", "get", "describe", "top"):
        output = paceline(verb, *(() if verb == "list" else ("x",))).output
        assert "\x1b" not in output
        assert "\x07" not in output


def test_jobs_are_chosen_by_labels(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "one", submitted_at=1e9)
    fill(home, "two", submitted_at=2e9, spec=dataclasses.replace(spec_of("two"), labels={"team": "search"}))
    names = ("list", "-o", "name")
    assert paceline(*names, "-l", "team in (ads, search)").stdout == "two\none\n"
    assert paceline(*names, "-l", "team!=ads").stdout == "two\n"
    assert paceline(*names, "-l", "team", "-l", "!stage,team=ads").stdout == "one\n"
    wrong = paceline(*names, "-l", "team in ads")
    assert wrong.exit_code == 2
    assert "'-l'" in wrong.stderr
    assert paceline("wait", "-l", "team=ads").stdout == "one succeeded\n"
    # What has ended is neither stopped nor resumed.
    assert paceline("stop", "-l", "team").stderr == "no such jobs\n"
    assert paceline("resume", "-l", "team").stderr == "no such jobs\n"
    assert paceline("delete", "-l", "team=search").stdout == "two deleted\n"
    assert paceline(*names).stdout == "one\n"


@pytest.mark.parametrize("verb", ["stop", "delete", "wait", "resume"])
def test_jobs_are_named_or_selected(home: state_dirs.Home, paceline: Paceline, verb: str) -> None:
    fill(home, "one")
    neither, both = paceline(verb), paceline(verb, "one", "-l", "team")
    assert (neither.exit_code, both.exit_code) == (2, 2)
    assert "which jobs?" in neither.stderr
    assert "not both" in both.stderr


def test_only_a_cluster_has_namespaces(home: state_dirs.Home, paceline: Paceline) -> None:
    result = paceline("list", "-A")
    assert (result.exit_code, "only a cluster has namespaces" in result.stderr) == (2, True)


def test_a_group_needs_a_user(paceline: Paceline) -> None:
    result = paceline("list", "--engine", "kubernetes", "--as-group", "admins")
    assert (result.exit_code, "--as USER" in result.stderr) == (2, True)


def test_scale_says_what_it_would_do_and_what_it_cannot(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "over")
    fill(home, "live", phase=JobPhase.RUNNING)
    done = paceline("scale", "live", "--workers", "3", "--dry-run")
    assert (done.exit_code, done.stdout) == (0, "live would be scaled to 3 workers\n")
    refused = paceline("scale", "over", "--workers", "3")
    assert refused.exit_code == 1
    assert "over does not run (succeeded)" in refused.stderr
    many = paceline("scale", "live", "--workers", "1000", "--dry-run")
    assert "workers at most, not 1000" in many.stderr
    assert paceline("scale", "live", "--workers", "0").exit_code == 2
    assert paceline("scale", "live").exit_code == 2
