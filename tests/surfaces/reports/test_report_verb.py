"""``paceline report`` on a store that is there."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import measured_runs
from support.measured_runs import START

from paceline import surfaces
from paceline.control import states
from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import ExitKind, ExitReason, JobPhase, ReplicaPhase
from paceline.stores import open_store
from paceline.surfaces.cli.main import cli

Report = Callable[..., int]
PAGES = ("charts", "reports", "templates")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with the run ``clicks``, whose worker-1 failed."""
    home = tmp_path / "home"
    folder = home / "runs" / "clicks"
    (folder / "logs").mkdir(parents=True)
    log = "".join(f"line {i}\n" for i in range(50)) + "<b>KeyError</b>\n"
    (folder / "logs" / "worker-1.1.log").write_text(log)
    (folder / "logs" / "worker-0.1.log").write_text("all is well\n")
    recording = measured_runs.recording(seconds=5, directory=str(folder))
    with open_store(f"sqlite:///{home / 'paceline.db'}") as store:
        state = states.initial(recording.run.spec)
        store.create_run(recording.run, state)
        reason = ExitReason(kind=ExitKind.ERROR, code=1, message="exit code 1")
        failed = {"phase": ReplicaPhase.FAILED, "attempt": 1, "exit": reason}
        store.save_state("clicks", _with(state, "worker-1", failed), at=START + 30)
        store.append_samples("clicks", recording.samples)
        store.append_step_reports("clicks", recording.steps)
        store.append_evaluations("clicks", recording.evaluations)
        store.append_events("clicks", recording.events)
    return home


def _with(state: states.JobState, replica: str, facts: dict[str, Any]) -> states.JobState:
    import dataclasses

    rows = tuple(
        dataclasses.replace(row, **(facts if str(row.replica) == replica else {"attempt": 1}))
        for row in state.replicas
    )
    return dataclasses.replace(
        state, replicas=rows, phase=JobPhase.FAILED, outcome=JobPhase.FAILED, message="worker-1 failed"
    )


@pytest.fixture
def report(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """Run ``paceline report`` in an empty folder; gives its exit code."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> int:
        with pytest.raises(SystemExit) as end:
            cli.main(["report", "--home", str(home), *arguments])
        assert isinstance(end.value.code, int)
        return end.value.code

    return call


def test_page_and_numbers(report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "truth.json").write_text('{"best_auc": 0.79}')
    assert report("clicks", "-o", "page.html", "--json", "numbers.json", "--truth", "truth.json") == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "page.html written" in told.err
    page = (tmp_path / "page.html").read_text()
    assert "worker-1 failed" in page
    assert "&lt;b&gt;KeyError&lt;/b&gt;" in page
    assert "line 31\n" in page
    assert "line 30\n" not in page
    assert "all is well" not in page
    numbers = json.loads((tmp_path / "numbers.json").read_text())
    assert (numbers["kind"], numbers["phase"], numbers["best_auc"]) == ("Report", "failed", 0.79)
    assert numbers["auc"] == 0.78
    assert numbers["elapsed_seconds"] is not None
    assert numbers["examples_per_second"] == pytest.approx(40_960)
    servers, workers = numbers["roles"]
    assert {each["replica"] for each in servers["replicas"]} == {"ps-0", "ps-1"}
    assert servers["imbalances"][0]["max_over_mean"] == pytest.approx(1.0, abs=0.1)
    (failed,) = (each for each in workers["replicas"] if each["replica"] == "worker-1")
    assert failed["exit"]["code"] == 1


def test_the_page_has_a_name_of_its_own(report: Report, tmp_path: Path) -> None:
    assert report("clicks") == 0
    assert (tmp_path / "clicks-report.html").exists()


def test_numbers_on_stdout(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    assert report("clicks", "--json", "-", "--best-auc", "0.8") == 0
    assert json.loads(capsys.readouterr().out)["best_auc"] == 0.8


def test_what_is_wrong_is_said(report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report("missing") == 3
    assert report("clicks", "-o", "no/such/folder.html") == 1
    assert "cannot be written: No such file or directory" in capsys.readouterr().err
    (tmp_path / "truth.json").write_text("{}")
    assert report("clicks", "--truth", "truth.json") == 2
    assert "does not say a best_auc" in capsys.readouterr().err


def test_without_the_extra_it_is_said_how_to_install_it(
    report: Report, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    module = "jinja2"
    for name in list(sys.modules):
        if name.partition(".")[0] == module or name.startswith(
            tuple(f"paceline.surfaces.{each}" for each in PAGES)
        ):
            monkeypatch.delitem(sys.modules, name)
    for name in PAGES:
        monkeypatch.delattr(surfaces, name, raising=False)
    real = builtins.__import__

    def blocked(name: str, *args: Any) -> Any:
        if name.partition(".")[0] == module:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", blocked)
    assert report("clicks") == 1
    told = capsys.readouterr().err
    assert f"a report needs {module}" in told
    assert "pip install 'paceline[report]'" in told


def test_a_run_that_has_not_started(home: Path, report: Report, tmp_path: Path) -> None:
    run: Run = measured_runs.run(name="later", phase=JobPhase.PENDING, started_at=None)
    with open_store(f"sqlite:///{home / 'paceline.db'}") as store:
        store.create_run(run, states.initial(run.spec))
    assert report("later") == 0
    assert "not started yet" in (tmp_path / "later-report.html").read_text()
